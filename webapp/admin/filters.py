"""User-defined filters in the admin: which of the installed ones queries may use."""

from django.contrib import admin

from streaming.udf import filter_places
from webapp.models import EnabledFilter


@admin.register(EnabledFilter)
class EnabledFilterAdmin(admin.ModelAdmin):
    """The switches of the installed filters."""

    list_display = ("name", "enabled", "place")
    list_editable = ("enabled",)
    readonly_fields = ("name", "place")
    fields = ("name", "place", "enabled")

    def changelist_view(self, request, extra_context=None):
        """List what is installed by now."""
        EnabledFilter.list_installed()
        return super().changelist_view(request, extra_context)

    def has_add_permission(self, request):
        """Filters come with packages."""
        return False

    def has_delete_permission(self, request, obj=None):
        """Filters go with packages."""
        return False

    @admin.display(description="class")
    def place(self, switch):
        """Where it is loaded from."""
        return filter_places().get(switch.name, "not installed")

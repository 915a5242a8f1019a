"""User-defined filters in the admin: which installed filters queries may use."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.udf import filter_places
from webapp.models import EnabledFilter


@admin.register(EnabledFilter)
class EnabledFilterAdmin(admin.ModelAdmin):
    """The switches that enable installed filters."""

    list_display = ("name", "enabled", "place")
    list_editable = ("enabled",)
    readonly_fields = ("name", "place")
    fields = ("name", "place", "enabled")

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """List all filters that are installed now."""
        EnabledFilter.list_installed()
        return super().changelist_view(request, extra_context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds filters here: packages bring them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Nobody deletes filters here: they go with their packages."""
        return False

    @admin.display(description=_("class"))
    def place(self, switch: EnabledFilter) -> str:
        """The class from which the filter is loaded."""
        return filter_places().get(switch.name, gettext("not installed"))

"""Events in the admin, read-only."""

from django.contrib import admin
from django.http import HttpRequest

from webapp.models import Event


@admin.register(Event)
class EventAdmin(admin.ModelAdmin):
    """Entries to and exits from answers."""

    list_display = ("time", "query", "text", "sign", "key", "partner", "reason", "lon", "lat", "bounds")
    list_filter = (
        "sign",
        "reason",
        "query__space",
        "query__stream",
        ("query", admin.RelatedOnlyFieldListFilter),
        "time",
    )
    list_select_related = ("query",)
    search_fields = ("key",)
    date_hierarchy = "time"
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds events: they are only recorded."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Events do not change."""
        return False

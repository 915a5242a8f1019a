"""The audit log in the admin: everybody's changes, which nobody can change."""

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _

from webapp.admin.incidents import ReadOnly
from webapp.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly, admin.ModelAdmin):
    """Who changed what, when, and from where."""

    list_display = ("at", "who", "way", "address", "action", "kind", "name", "team_name", "count", "what")
    list_filter = ("action", "kind", "way", "team_name", "user_name", "at")
    search_fields = ("name", "user_name", "key", "address")
    date_hierarchy = "at"
    show_full_result_count = False
    fields = readonly_fields = (
        *("at", "since", "count", "who", "user_number", "way", "address", "action", "kind", "key", "name"),
        *("team_name", "team", "former_team", "what"),
    )

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Rows end with their time only."""
        return False

    @admin.display(description=_("user"), ordering="user_name")
    def who(self, entry: AuditEntry) -> str:
        """The user; Lookout itself if there is none."""
        return entry.user_name or "Lookout"

    @admin.display(description=_("changes"))
    def what(self, entry: AuditEntry) -> str:
        """Each field with its old and its new value."""
        lines = [(field, _cut(old), _cut(new)) for field, old, new in entry.lines]
        return format_html_join("", "<p><b>{}</b>: {} → {}</p>", lines) or "–"


def _cut(text: str, most: int = 400) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

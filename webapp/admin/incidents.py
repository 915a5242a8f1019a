"""Incidents in the admin: their list, the actions, and the audit log, which nobody can change."""

from collections.abc import Callable

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.alarms import incidents
from webapp.models import Incident, IncidentChange
from webapp.rights.signed_in import SignedInRequest
from webapp.words.refusals import Refused


class StateFilter(admin.SimpleListFilter):
    """Choose open or closed incidents."""

    title, parameter_name = "state", "state"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin) -> list[tuple[str, str]]:
        """Offer the states."""
        return [(state, state) for state in incidents.STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Incident]) -> QuerySet[Incident]:
        """Select the incidents of a state."""
        state = self.value()
        return queryset if state is None else queryset.filter(closed__isnull=state == incidents.OPEN)


class ReadOnly:
    """Nobody adds, changes or deletes rows by hand."""

    def has_add_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Rows are only recorded."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Rows do not change by hand."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        """Rows go with their query only, whose page asks for this permission, too."""
        assert request.resolver_match is not None  # Django resolves the address before
        return not (request.resolver_match.url_name or "").startswith("webapp_incident")


class ChangesOfIncident(ReadOnly, admin.TabularInline):
    """The audit log of an incident."""

    model = IncidentChange
    fields = readonly_fields = ("at", "user", "what", "text")
    verbose_name_plural = _("audit log")


@admin.register(Incident)
class IncidentAdmin(ReadOnly, admin.ModelAdmin):
    """Incidents; the actions use the same functions as the websocket (`webapp.alarms.incidents`)."""

    list_display = (
        *("id", "severity", "query", "key", "partner", "opened", "closed", "acknowledged_by", "assigned_to"),
        *("snoozed_until", "closed_by"),
    )
    list_filter = (
        StateFilter,
        "severity",
        ("assigned_to", admin.RelatedOnlyFieldListFilter),
        ("query", admin.RelatedOnlyFieldListFilter),
        "query__space",
        "opened",
    )
    list_select_related = ("query", "acknowledged_by", "assigned_to", "closed_by")
    search_fields = ("key", "partner", "query__name")
    date_hierarchy = "opened"
    show_full_result_count = False
    inlines = (ChangesOfIncident,)
    actions = ("acknowledge", "close")

    @admin.action(description=_("Acknowledge selected incidents"))
    def acknowledge(self, request: SignedInRequest, queryset: QuerySet[Incident]) -> None:
        """Acknowledge incidents."""
        self._each(request, queryset, incidents.acknowledge, gettext("%(count)s incidents acknowledged"))

    @admin.action(description=_("Close selected incidents"))
    def close(self, request: SignedInRequest, queryset: QuerySet[Incident]) -> None:
        """Close incidents by hand."""
        self._each(request, queryset, incidents.close, gettext("%(count)s incidents closed"))

    def _each(
        self, request: SignedInRequest, queryset: QuerySet[Incident], action: Callable[[User, int], object], done: str
    ) -> None:
        count = 0
        for incident in queryset:
            try:
                action(request.user, incident.pk)
                count += 1
            except Refused as refused:
                self.message_user(request, refused.message, messages.ERROR)
        self.message_user(request, done % {"count": count}, messages.SUCCESS)


@admin.register(IncidentChange)
class IncidentChangeAdmin(ReadOnly, admin.ModelAdmin):
    """The audit log of all incidents."""

    list_display = ("at", "incident", "what", "user", "text")
    list_filter = ("what", ("user", admin.RelatedOnlyFieldListFilter), "incident__severity", "at")
    list_select_related = ("incident__query", "user")
    search_fields = ("incident__key", "incident__query__name", "text")
    date_hierarchy = "at"
    show_full_result_count = False

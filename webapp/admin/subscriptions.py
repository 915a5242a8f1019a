"""Subscriptions in the admin: who gets which alarms, by which channel, and when."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.language import thousands
from webapp.models import IncidentChange, Query, Subscription, Team
from webapp.models.schedule import DAYS
from webapp.rights.access import rights_of, usable_by


class SubscriptionForm(forms.ModelForm):
    """The form of a subscription, with boxes for changes and days."""

    changes = forms.MultipleChoiceField(
        choices=IncidentChange.WHAT,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Which changes of incidents are sent."),
    )
    weekdays = forms.TypedMultipleChoiceField(
        label=_("Days"),
        coerce=int,
        choices=list(enumerate(DAYS)),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("What happens on other days, or outside the times below, is not sent."),
    )
    time_zone = forms.ChoiceField(
        choices=lambda: [(name, name) for name in sorted(available_timezones())], help_text=_("Of days and times.")
    )

    class Meta:
        model = Subscription
        fields = "__all__"

    def clean(self) -> dict[str, Any]:
        """Refuse queries that the receiver does not see, since nothing of them would be sent."""
        super().clean()
        cleaned = self.cleaned_data
        user, team = cleaned.get("user"), cleaned.get("team")
        if bool(user) != bool(team):
            unseen = [query for query in cleaned.get("queries") or () if not self._sees(user, team, query)]
            if unseen:
                self.add_error(
                    "queries",
                    gettext("%(value)s does not see %(map)s: share it first")
                    % {"value": user or team, "map": ", ".join(map(str, unseen))},
                )
        return cleaned

    def _post_clean(self) -> None:
        """Refuse a channel of somebody else, once the subscription has its receiver, which not all forms ask for."""
        super()._post_clean()  # type: ignore[misc]  # the stubs lack it; forms of Django extend it, too
        subscription = self.instance
        someone = bool(subscription.user_id) != bool(subscription.team_id)
        if someone and subscription.channel_id and not usable_by(subscription.channel, subscription):
            self.add_error(
                "channel",
                gettext("the channel %(channel)s belongs to another user or team") % {"channel": subscription.channel},
            )

    @staticmethod
    def _sees(user: User | None, team: Team | None, query: Query) -> bool:
        return (query.shared or query.team == team) if user is None else rights_of(user).sees(query)


@admin.register(Subscription)
class SubscriptionAdmin(admin.ModelAdmin):
    """Subscriptions."""

    form = SubscriptionForm
    list_display = ("receiver", "channel", "severity", "what", "when", "most", "enabled")
    list_display_links = ("receiver", "channel")
    list_filter = ("enabled", "severity", "channel", "user", "team")
    list_select_related = ("user", "team", "channel")
    search_fields = ("user__username", "team__name", "channel__name")
    autocomplete_fields = ("user", "queries")
    fieldsets = (
        (None, {"fields": ("user", "team", "channel", "enabled"), "description": _("Of a user, or of a team.")}),
        (_("What"), {"fields": ("severity", "changes", "queries")}),
        (_("When"), {"fields": ("weekdays", ("begins", "ends"), "time_zone"), "classes": ("schedule",)}),
        (_("Limit"), {"fields": ("limit", "window_s")}),
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Suggest the present user, and what a subscription has without being asked."""
        usual = Subscription()
        return {"user": request.user.pk} | {name: getattr(usual, name) for name in ("changes", "weekdays", "time_zone")}

    @admin.display(description=_("receiver"), ordering="user")
    def receiver(self, subscription: Subscription) -> User | str:
        """The user or the team."""
        return subscription.user or f"{subscription.team} (team)"

    @admin.display(description=_("changes"))
    def what(self, subscription: Subscription) -> str:
        """The changes that are sent."""
        return ", ".join(subscription.changes)

    @admin.display(description=_("when"))
    def when(self, subscription: Subscription) -> str:
        """The schedule in words."""
        return subscription.schedule

    @admin.display(description=_("limit"))
    def most(self, subscription: Subscription) -> str:
        """The limit in words."""
        return (
            gettext("%(limit)s in %(window_s)s s")
            % {"limit": subscription.limit, "window_s": thousands(subscription.window_s)}
            if subscription.limit
            else gettext("none")
        )

"""The pages of a user's teams: members, share links, channels, subscriptions, and the log of changes."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Manager, Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.models import AuditEntry, Channel, Query, Role, Subscription, Team
from webapp.rights.access import rights_of
from webapp.rights.signed_in import SignedInRequest
from webapp.teams import links, members
from webapp.words.refusals import Refused

Chosen = TypeVar("Chosen", bound=Model)
Form = TypeVar("Form", bound=forms.ModelForm)

PAGE_ENTRIES = 50


@never_cache
@require_safe
@login_required
def every(request: HttpRequest) -> HttpResponse:
    """Show the teams that a user may see."""
    rights = rights_of(request.user)
    teams = [(team, rights.roles.get(team.pk, "staff")) for team in rights.teams().prefetch_related("memberships")]
    return render(request, "teams/every.html", {"teams": teams})


@never_cache
@require_safe
@login_required
def page(request: HttpRequest, number: int) -> HttpResponse:
    """Show a team to its members; to its admins with all that they manage."""
    rights = rights_of(request.user)
    team = rights.teams().filter(pk=number).first()
    if team is None:
        raise Http404
    manages = rights.manages(number)
    context: dict[str, Any] = {
        "team": team,
        "manages": manages,
        "role": rights.roles.get(number, ""),
        "roles": Role,
        "members": team.memberships.select_related("user"),
        "queries": team.queries.alive().select_related("owner"),
        "layers": team.layers.select_related("owner"),
        "views": team.saved_views.select_related("owner"),
    }
    if manages:
        context |= {
            "links": team.share_links.filter(revoked=None, expires__gt=timezone.now()).select_related("owner"),
            "channels": team.channels.all(),
            "subscriptions": team.subscriptions.select_related("channel").prefetch_related("queries"),
            **_log(number, request.GET.get("before", "")),
        }
    return render(request, "teams/team.html", context)


def _log(team: int, before: str) -> dict[str, Any]:
    entries = AuditEntry.objects.of_team(team)
    if before.isascii() and before.isdigit():
        entries = entries.filter(pk__lt=int(before))
    found = list(entries[: PAGE_ENTRIES + 1])
    return {"entries": found[:PAGE_ENTRIES], "older": found[PAGE_ENTRIES - 1].pk if len(found) > PAGE_ENTRIES else None}


@never_cache
@require_POST
@login_required
def change(request: SignedInRequest, number: int) -> HttpResponse:
    """Carry out what a button of the page of a team asks for, and show the page again, or why it was refused."""
    action = ACTIONS.get(request.POST.get("action", ""))
    try:
        if action is None:
            raise Refused(
                "fields",
                gettext("action must be one of %(actions)s; got none of them") % {"actions": ", ".join(ACTIONS)},
            )
        messages.success(request, action(request.user, number, request.POST))
    except Refused as refused:
        messages.error(request, refused.message)
    sees = rights_of(request.user).teams().filter(pk=number).exists()
    return redirect("team", number) if sees else redirect("teams")


def _put(user: User, team: int, given: Mapping[str, str]) -> str:
    name = given.get("name", "").strip()
    member = members.put(user, team, name, given.get("role", ""))
    return gettext("%(name)s is %(role)s now.") % {"name": name, "role": member.role}


def _remove(user: User, team: int, given: Mapping[str, str]) -> str:
    name = given.get("name", "")
    members.remove(user, team, name)
    return gettext("%(name)s is no longer a member.") % {"name": name}


def _revoke(user: User, team: int, given: Mapping[str, str]) -> str:
    link = links.revoke(user, _number(given, "link"))
    return gettext("The link %(name)s is revoked.") % {"name": link.name}


def _drop_channel(user: User, team: int, given: Mapping[str, str]) -> str:
    with transaction.atomic():
        found = members.managed(user, team).channels.filter(pk=_number(given, "channel"))
        found.delete()
    return gettext("The channel is deleted.")


def _drop_subscription(user: User, team: int, given: Mapping[str, str]) -> str:
    with transaction.atomic():
        found = members.managed(user, team).subscriptions.filter(pk=_number(given, "subscription"))
        found.delete()
    return gettext("The subscription is deleted.")


def _number(given: Mapping[str, str], name: str) -> int:
    text = given.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(
            "fields", gettext("%(name)s must be a number; got %(text)s") % {"name": name, "text": f"{text!r:.40}"}
        )
    return int(text)


ACTIONS: dict[str, Callable[[User, int, Mapping[str, str]], str]] = {
    "put": _put,
    "remove": _remove,
    "revoke": _revoke,
    "drop-channel": _drop_channel,
    "drop-subscription": _drop_subscription,
}


def for_admins(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that gets the team that the user manages; it answers 404 to anybody else."""

    @never_cache
    @login_required
    @wraps(view)
    def guarded(request: HttpRequest, number: int) -> HttpResponse:
        team = Team.objects.filter(pk=number).first()
        if team is None or not rights_of(request.user).manages(number):
            raise Http404
        return view(request, team)

    return guarded


@for_admins
def channel(request: HttpRequest, team: Team) -> HttpResponse:
    """Add or change a channel of a team. A new one begins with the choice of its kind."""
    from webapp.admin.channels import channel_form, channel_kinds  # late: it loads the libraries of all kinds

    saved = _chosen(request, "channel", team.channels)
    kind = saved.kind if saved else request.GET.get("kind", "")
    if kind not in channel_kinds():
        return render(request, "teams/kinds.html", {"team": team, "kinds": channel_kinds()})
    form = _bound(request, channel_form(), saved or Channel(team=team, kind=kind), {"kind": kind})
    for name in list(form.fields):
        if name in ("owner", "team") or (name.startswith("channel__") and not name.startswith(f"channel__{kind}__")):
            del form.fields[name]
    if not (saved and saved.secrets):
        del form.fields["forget"]
    form.fields["kind"].widget = forms.HiddenInput()
    return _saved(request, form, team, gettext("Channel of %(team)s: %(kind)s") % {"team": team, "kind": kind})


@for_admins
def subscription(request: HttpRequest, team: Team) -> HttpResponse:
    """Add or change a subscription of a team."""
    from webapp.admin.subscriptions import SubscriptionForm

    saved = _chosen(request, "subscription", team.subscriptions)
    usual = Subscription()
    initial = {} if saved else {name: getattr(usual, name) for name in ("changes", "weekdays", "time_zone")}
    form = _bound(request, team_subscription_form(SubscriptionForm), saved or Subscription(team=team), initial)
    _offer(form, "channel", Channel.objects.filter(Q(team=team) | Q(team=None, owner=None)))
    _offer(form, "queries", Query.objects.alive().filter(Q(team=team) | Q(shared=True)).exclude(severity=""))
    return _saved(request, form, team, gettext("Subscription of %(team)s") % {"team": team})


def team_subscription_form(base: type[forms.ModelForm]) -> type[forms.ModelForm]:
    """Return the form of a subscription without its receiver, which is the team."""

    class TeamSubscriptionForm(base):  # type: ignore[valid-type, misc]  # loaded late
        user = team = None

        class Meta(base.Meta):  # type: ignore[name-defined]
            fields = None
            exclude = ("user", "team")

    return TeamSubscriptionForm


def _chosen(request: HttpRequest, name: str, among: Manager[Chosen]) -> Chosen | None:
    """Return the object that an address names, among those of the team; None if it names none."""
    text = request.GET.get(name, "")
    return among.filter(pk=int(text)).first() if text.isascii() and text.isdigit() and len(text) < 16 else None


def _offer(form: forms.ModelForm, field: str, among: QuerySet[Any]) -> None:
    """Set the objects that a field of a form lets choose from."""
    cast("forms.ModelChoiceField[Any]", form.fields[field]).queryset = among


def _bound(request: HttpRequest, form: type[Form], instance: Model, initial: dict[str, Any]) -> Form:
    given = request.POST if request.method == "POST" else None
    return form(given, instance=instance, initial=initial)


def _saved(request: HttpRequest, form: forms.ModelForm, team: Team, title: str) -> HttpResponse:
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, gettext("%(instance)s is saved.") % {"instance": form.instance})
        return redirect("team", team.pk)
    return render(request, "teams/form.html", {"team": team, "form": form, "title": title})

"""A team with one member of each role, somebody of another team, staff, and what people share."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from tests.webapp.conftest import PLAN
from webapp.models import Incident, Layer, Membership, Query, Role, SavedView, ShareLink, Team
from webapp.teams import links

WHO = ("owner", "viewer", "analyst", "admin", "stranger", "staff")
OF = ("private", "team", "shared", "other team")


@dataclass
class Scene:
    """Users by what they are in the team, and objects by who sees them."""

    users: dict[str, Any] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    layers: dict[str, Layer] = field(default_factory=dict)
    views: dict[str, SavedView] = field(default_factory=dict)
    incidents: dict[str, Incident] = field(default_factory=dict)
    link: ShareLink | None = None
    secret: str = ""
    team: Team | None = None
    other: Team | None = None


@transaction.atomic
def scene() -> Scene:
    """Make the users and objects; streams must be there."""
    made = Scene(team=Team.objects.create(name="wharf"), other=Team.objects.create(name="airport"))
    for who in WHO:
        user = get_user_model().objects.create_user(who, is_staff=who == "staff", is_superuser=who == "staff")
        made.users[who] = user
        if who in Role.values:
            Membership.objects.create(team=made.team, user=user, role=who)
    Membership.objects.create(team=made.other, user=made.users["stranger"], role=Role.ADMIN)
    owner = made.users["owner"]
    teams = {"team": made.team, "other team": made.other}
    for of in OF:
        about = {"owner": owner, "team": teams.get(of)}
        query = Query.objects.create(
            **about, name=of, stream="ships", plan=PLAN, shared=of == "shared", severity="info", status=Query.RUNNING
        )
        made.queries[of] = query
        made.incidents[of] = Incident.objects.create(query=query, key=of, severity="info", opened=timezone.now())
        made.layers[of] = Layer.objects.create(**about, name=of.replace(" ", "-"), space_id="earth", status="ready")
        if of != "shared":
            made.views[of] = SavedView.objects.create(**about, name=of, address="#4/50/14")
    made.link, made.secret = links.make(made.users["admin"], "for guests", [made.queries["team"].pk], 1)
    return made


def expire(link: ShareLink, seconds: float = -1.0) -> None:
    """Let a link expire, or expire soon."""
    link.expires = timezone.now() + timedelta(seconds=seconds)
    link.save()

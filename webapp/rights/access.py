"""Who may see and change what: the one place that decides, for the websocket, pages, the admin, reports and alarms.

====================  =========================================  ==============================================
what                  who sees it                                who changes it
====================  =========================================  ==============================================
query, rule           its owner, its team, everybody if it is    its owner, analysts of its team, staff
                      shared; by its number also staff
its incidents         as the query                               its owner, analysts of its team, everybody if
                      (acts: the next column)                    it is shared, staff
layer                 everybody; of a team only its owner, its   its owner, analysts of its team, staff
                      team, staff
saved view            its owner, its team                        its owner, analysts of its team
share link            its maker; of a team its admins; staff     as it is seen
team                  its members, staff                         its admins, staff
====================  =========================================  ==============================================

Staff see and change here what the permissions of Django's models allow them, as in the admin; superusers everything. A
guest, who opened a share link, sees the queries of the link and changes nothing. What a query reads, `reads` decides.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from webapp.models import (
    Channel,
    Layer,
    Membership,
    Query,
    RemovedExamples,
    Role,
    SavedView,
    ShareLink,
    Subscription,
    Team,
)
from webapp.words.refusals import Refused

EDITORS, ADMINS = Role.at_least(Role.ANALYST), Role.at_least(Role.ADMIN)
# The permissions of models that let staff act on what is not theirs; who may change something may also view it.
_STAFF = {
    "query": ("view_query", "change_query"),
    "layer": ("view_layer", "change_layer"),
    "sharelink": ("change_sharelink",),
    "team": ("view_team", "change_team"),
    "delivery": ("view_delivery", "change_delivery"),
}
PERMISSIONS = frozenset(name for names in _STAFF.values() for name in names)


class Guest:
    """Somebody without a login who opened a share link; it takes the place of a user."""

    is_authenticated = is_staff = is_superuser = False
    pk: None = None

    def __init__(self, link: ShareLink) -> None:
        self.link, self.is_active = link, True

    def get_username(self) -> str:
        """Return the empty name of a guest."""
        return ""


# Whoever may ask for something.
Asker = User | AnonymousUser | Guest


@dataclass(frozen=True)
class Rights:
    """What one user may see and change, as the database had it when this was read.

    Attributes
    ----------
    user_id : int or None
        None for a guest.
    permitted : frozenset of str
        Those of `PERMISSIONS` that a member of staff has; a superuser has all.
    roles : dict of int to str
        The user's role by team.
    link : ShareLink or None
        Of a guest.
    shown : frozenset of int
        The queries of that link.
    active : bool
        Somebody who is not active sees nothing.
    """

    user_id: int | None = None
    permitted: frozenset[str] = frozenset()
    roles: dict[int, str] = field(default_factory=dict)
    link: ShareLink | None = None
    shown: frozenset[int] = frozenset()
    active: bool = True

    # Queries, rules and incidents.

    def queries(self) -> QuerySet[Query]:
        """Select the queries that the user may see if they ask by number, without those that have ended."""
        alive = Query.objects.alive()
        return alive if self.views_all("query") else alive.filter(self._seen())

    def listed(self) -> QuerySet[Query]:
        """Select the queries of the user's list: without those that only staff may see, and removed examples."""
        seen = Query.objects.alive().filter(self._seen())
        removed = self.user_id is not None and RemovedExamples.objects.filter(user=self.user_id).exists()
        return seen.filter(owner__isnull=False) if removed else seen

    def sees(self, query: Query) -> bool:
        """Return whether the user may see a query's answer, events and incidents."""
        return self.sees_query(query.pk, query.owner_id, query.shared, query.team_id)

    def sees_query(self, number: int, owner_id: int | None, shared: bool, team_id: int | None) -> bool:
        """Return whether the user may see a query of which these are known."""
        return self.views_all("query") or self.lists_query(number, owner_id, shared, team_id)

    def lists_query(self, number: int, owner_id: int | None, shared: bool, team_id: int | None) -> bool:
        """Return whether the user's list has a query of which these are known; removed examples count as listed.

        It says for one query what `_seen` says for all.
        """
        if not self.active:
            return False
        if self.link is not None:
            theirs = team_id == self.link.team_id if self.link.team_id else owner_id == self.link.owner_id
            return number in self.shown and theirs
        return shared or self._owns(owner_id) or team_id in self.roles

    def edits(self, query: Query) -> bool:
        """Return whether the user may change or end a query."""
        return self._edits("query", query.owner_id, query.team_id)

    def shares(self, query: Query) -> bool:
        """Return whether the user may choose who sees a query: its owner, admins of its team, staff."""
        return self.changes_all("query") or (
            self.active and (self._owns(query.owner_id) or self.manages(query.team_id))
        )

    def acts(self, query: Query) -> bool:
        """Return whether the user may act on the incidents of a query."""
        return self.active and self.link is None and (query.shared or self.edits(query))

    def _seen(self) -> Q:
        if not self.active:
            return Q(pk__in=())
        if self.link is not None:
            theirs = Q(team=self.link.team_id) if self.link.team_id else Q(owner=self.link.owner_id)
            return Q(pk__in=self.shown) & theirs
        return Q(shared=True) | Q(owner=self.user_id) | Q(team__in=self.roles)

    # Layers.

    def layers(self) -> QuerySet[Layer]:
        """Select the layers that the user may see."""
        if not self.active or self.link is not None:
            return Layer.objects.none()
        if self.views_all("layer"):
            return Layer.objects.all()
        return Layer.objects.filter(Q(team=None) | Q(owner=self.user_id) | Q(team__in=self.roles))

    def sees_layer(self, owner_id: int | None, team_id: int | None) -> bool:
        """Return whether the user may see a layer of which these are known."""
        if not self.active or self.link is not None:
            return False
        return self.views_all("layer") or team_id is None or self._owns(owner_id) or team_id in self.roles

    def sees_named(self, named: Query | Layer) -> bool:
        """Return whether the user may see what a query names: a layer, or another query."""
        return self.sees(named) if isinstance(named, Query) else self.sees_layer(named.owner_id, named.team_id)

    def edits_layer(self, layer: Layer) -> bool:
        """Return whether the user may change or drop a layer."""
        return self._edits("layer", layer.owner_id, layer.team_id)

    def shares_layer(self, layer: Layer) -> bool:
        """Return whether the user may choose who sees a layer: its owner, admins of its team, staff."""
        return self.changes_all("layer") or (
            self.active and (self._owns(layer.owner_id) or self.manages(layer.team_id))
        )

    # Saved views, share links, teams.

    def views(self) -> QuerySet[SavedView]:
        """Select the saved views that the user may see."""
        if not self.active or self.link is not None:
            return SavedView.objects.none()
        return SavedView.objects.filter(Q(owner=self.user_id) | Q(team__in=self.roles))

    def edits_view(self, view: SavedView) -> bool:
        """Return whether the user may change or delete a saved view."""
        return self._edits("view", view.owner_id, view.team_id)

    def links(self) -> QuerySet[ShareLink]:
        """Select the share links that the user may see and revoke."""
        if not self.active or self.link is not None:
            return ShareLink.objects.none()
        managed = [team for team, role in self.roles.items() if role in ADMINS]
        mine = Q(owner=self.user_id, team=None) | Q(team__in=managed)
        return ShareLink.objects.all() if self.changes_all("sharelink") else ShareLink.objects.filter(mine)

    def teams(self) -> QuerySet[Team]:
        """Select the teams that the user may see."""
        if not self.active or self.link is not None:
            return Team.objects.none()
        return Team.objects.all() if self.views_all("team") else Team.objects.filter(pk__in=self.roles)

    def manages(self, team_id: int | None) -> bool:
        """Return whether the user may manage a team's members, links, channels and subscriptions."""
        return team_id is not None and (self.changes_all("team") or (self.active and self.roles.get(team_id) in ADMINS))

    def gives_to(self, team_id: int | None) -> bool:
        """Return whether the user may give something of theirs to a team, or to no team."""
        return team_id is None or self.changes_all("team") or self.roles.get(team_id) in EDITORS

    # Staff.

    def views_all(self, model: str) -> bool:
        """Return whether the user, as staff, may see everything of a model of `_STAFF`."""
        return self.active and not self.permitted.isdisjoint(_STAFF.get(model, ()))

    def changes_all(self, model: str) -> bool:
        """Return whether the user, as staff, may change everything of a model of `_STAFF`."""
        return self.active and model in _STAFF and _STAFF[model][-1] in self.permitted

    def _edits(self, model: str, owner_id: int | None, team_id: int | None) -> bool:
        if not self.active or self.link is not None:
            return False
        return (
            self.changes_all(model)
            or self._owns(owner_id)
            or (team_id is not None and self.roles.get(team_id) in EDITORS)
        )

    def _owns(self, owner_id: int | None) -> bool:
        return owner_id is not None and owner_id == self.user_id


NOTHING = Rights(active=False)


def rights_of(user: Asker | None) -> Rights:
    """Return the present rights of a user or of a `Guest`; of anybody else, none."""
    if isinstance(user, Guest):
        link = ShareLink.objects.select_related("owner").filter(pk=user.link.pk).first()
        if link is None or not link.valid:
            return NOTHING
        return Rights(link=link, shown=frozenset(link.queries.values_list("pk", flat=True)))
    if user is None or user.pk is None:
        return NOTHING
    return rights_of_users([user.pk]).get(user.pk, NOTHING)


def rights_of_users(numbers: Iterable[int]) -> dict[int, Rights]:
    """Return the present rights of users by number, with one question to the database; three if some are staff."""
    found = get_user_model().objects.filter(pk__in=numbers)
    fields = ("pk", "is_staff", "is_superuser", "is_active", "memberships__team", "memberships__role")
    rows = list(found.values_list(*fields))
    permitted = _permitted({user for user, staff, everything, *_ in rows if staff and not everything})
    known: dict[int, Rights] = {}
    for user, _, everything, active, team, role in rows:
        its = PERMISSIONS if everything else frozenset(permitted.get(user, ()))
        rights = known.setdefault(user, Rights(user, its, active=active))
        if team is not None:
            rights.roles[team] = role
    return known


def _permitted(staff: Collection[int]) -> dict[int, set[str]]:
    """Return the permissions of `PERMISSIONS` that members of staff have, of their own or by their groups."""
    permitted: dict[int, set[str]] = {}
    about = Permission.objects.filter(content_type__app_label="webapp", codename__in=PERMISSIONS)
    for way in ("user", "group__user") if staff else ():
        for user, name in about.filter(**{f"{way}__in": staff}).values_list(way, "codename"):
            permitted.setdefault(user, set()).add(name)
    return permitted


def reads(query: Query, named: Query | Layer, owner: Rights, asker: Rights | None = None) -> bool:
    """Return whether a saved query may read a layer with which it joins, or a query that it watches.

    Its owner must see that. A query whose owner may not use Lookout, or that has none, reads what everybody sees, and
    what belongs to the same owner or team.

    Parameters
    ----------
    query : Query
    named : Query or Layer
    owner : Rights
        Of the owner of the query; `NOTHING` without one.
    asker : Rights, optional
        Of somebody for whom the query is evaluated anew, who must see it, too.
    """
    if asker is not None and not asker.sees_named(named):
        return False
    if owner.active:
        return owner.sees_named(named)
    everybody = named.shared if isinstance(named, Query) else named.team_id is None
    same_owner = named.owner_id is not None and named.owner_id == query.owner_id
    return everybody or same_owner or (named.team_id is not None and named.team_id == query.team_id)


def team_of(rights: Rights, number: int | None) -> Team | None:
    """Return the team to which somebody gives something of theirs; None for no team.

    Raises
    ------
    Refused
        Where they may not create anything in that team, or there is none.
    """
    team = None if number is None else rights.teams().filter(pk=number).first()
    if number is not None and (team is None or not rights.gives_to(number)):
        raise Refused(
            "team",
            gettext("team must be one in which you are an analyst or an admin; got %(number)s") % {"number": number},
        )
    return team


def people(query: Query) -> QuerySet[User]:
    """Select the active users who may act on the incidents of a query, ordered by name."""
    users = get_user_model().objects.filter(is_active=True).order_by(get_user_model().USERNAME_FIELD)
    if query.shared:
        return users
    # A subquery instead of a join, which would list a member of several teams several times.
    editors = Membership.objects.filter(team=query.team_id, role__in=EDITORS).values("user")
    granted = Permission.objects.filter(content_type__app_label="webapp", codename="change_query")
    by_group = get_user_model().objects.filter(groups__permissions__in=granted).values("pk")
    permitted = get_user_model().objects.filter(user_permissions__in=granted).values("pk")
    staff = Q(is_superuser=True) | (Q(is_staff=True) & (Q(pk__in=permitted) | Q(pk__in=by_group)))
    return users.filter(staff | Q(pk=query.owner_id) | Q(pk__in=editors))


def uses_channel(channel: Channel, subscription: Subscription, rights: Rights | None) -> bool:
    """Return whether a subscription may use a channel now; `rights` are those of its user, None for a team's."""
    if channel.owner_id:
        return channel.owner_id == subscription.user_id
    if not channel.team_id:
        return True
    return channel.team_id == subscription.team_id if rights is None else channel.team_id in rights.roles


def usable_by(channel: Channel, subscription: Subscription) -> bool:
    """Return whether a subscription may use a channel by the present rights of its receiver."""
    return uses_channel(channel, subscription, None if subscription.team_id else rights_of(subscription.user))


def hears(subscription: Subscription, query: Query, rights: Rights | None, examples: bool, named: bool) -> bool:
    """Return whether a subscription may tell of the incidents of a query.

    Parameters
    ----------
    subscription : Subscription
    query : Query
    rights : Rights, optional
        Of the subscription's user; None for a team's subscription.
    examples : bool
        Whether that user sees the examples.
    named : bool
        Whether the subscription names the query; staff hear of a query that they only may see if it does.
    """
    if rights is None:
        return query.shared or (query.team_id is not None and query.team_id == subscription.team_id)
    listed = rights.lists_query(query.pk, query.owner_id, query.shared, query.team_id)
    return (listed and (examples or not query.example)) or (named and rights.views_all("query"))

"""The doors of Lookout, made from its tables: what each message and each address asks for, and who then may pass.

Each door is about the things of a team: a query, its incident, a layer, a saved view and a share link. `MESSAGES` and
`ADDRESSES` say of each entry of the tables which right it needs, and how to see whether it was given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# Rights to the things of the team. "open": the door shows nothing of a team, whoever comes.
OPEN, SEE, LIST, EDIT, ACT, MANAGE, GIVE, LINK = "open", "see", "list", "edit", "act", "manage", "give", "link"
LAYER, EDIT_LAYER, SHARE_LAYER, VIEW, EDIT_VIEW = "layer", "edit layer", "share layer", "view", "edit view"
# The page of the team; the flag of staff; permissions of models in the admin.
TEAM, FLAG, PERMIT = "team", "flag", "permit"


@dataclass(frozen=True)
class Door:
    """One way in.

    Attributes
    ----------
    needs : str
        The right.
    fields : dict
        Of the message; texts in braces stand for numbers of the scene.
    shows : str
        What the answer has if the right is there, and only then; empty: an answer that is no refusal.
    refusals : frozenset of str
        The codes that refuse for want of the right; others are about something else.
    late : int
        Doors that end something come after the others.
    """

    needs: str
    fields: dict[str, Any] = field(default_factory=dict)
    shows: str = ""
    refusals: frozenset[str] = frozenset({"query", "owner", "incident", "view", "link", "team", "access", "table"})
    late: int = 0


def door(needs: str = OPEN, shows: str = "", late: int = 0, refusals: str = "", **fields: Any) -> Door:
    """Return a door; `refusals` are codes with spaces between them, if they are others than usual."""
    chosen = {"refusals": frozenset(refusals.split())} if refusals else {}
    return Door(needs, fields, shows, late=late, **chosen)


RULE = {"stream": "ships", "kind": "rule", "when": {"query": "{query}"}}
JOIN = {"stream": "ships", "kind": "join", "join": {"layer": "team"}}
TABLE = {"layer": "team"}
HOUR = {"from": 1_700_000_000, "to": 1_700_003_600}

MESSAGES: dict[str, Door] = {
    "filter.check": door(),
    "query.register": door(SEE, name="rule", plan=RULE, refusals="plan"),
    "query.edit": door(EDIT, query="{query}", name="team"),
    "query.cancel": door(EDIT, late=3, query="{query}"),
    "examples.show": door(),
    "query.list": door(LIST, '"query": {query},', search="team"),
    "query.subscribe": door(SEE, query="{query}"),
    "query.unsubscribe": door(late=1, query="{query}"),
    "query.snapshot": door(SEE, query="{query}"),
    "incident.list": door(LIST, '"incident": {incident},'),
    "incident.get": door(SEE, incident="{incident}"),
    "incident.acknowledge": door(ACT, incident="{incident}"),
    "incident.assign": door(ACT, incident="{incident}", to=None),
    "incident.comment": door(ACT, incident="{incident}", text="hm"),
    "incident.snooze": door(ACT, incident="{incident}", until="{soon}"),
    "incident.wake": door(ACT, incident="{incident}"),
    "incident.close": door(ACT, late=1, incident="{incident}"),
    "why.object": door(SEE, query="{query}", stream="ships", key="a"),
    "why.event": door(SEE, query="{query}", key="a", sign="+", time_us=0, partner=""),
    "why.incident": door(SEE, incident="{incident}"),
    # Streams are not stored, which is refused after what is not allowed.
    "backtest.start": door(LAYER, plan=JOIN, span=HOUR),
    "backtest.cancel": door(),
    "saved.list": door(VIEW, '"view": {view},'),
    "saved.add": door(GIVE, name="v", address="", team="{team}"),
    "saved.edit": door(EDIT_VIEW, view="{view}", name="team"),
    "saved.delete": door(EDIT_VIEW, late=1, view="{view}"),
    "link.list": door(MANAGE, '"link": {link},'),
    "link.add": door(LINK, name="l", queries=["{query}"], hours=1),
    "link.revoke": door(MANAGE, late=2, link="{link}"),
    "roles.subscribe": door(SEE, query="{query}"),
    "roles.unsubscribe": door(late=1, query="{query}"),
    "regions.subscribe": door(),
    "regions.unsubscribe": door(),
    "view.subscribe": door(),
    "view.unsubscribe": door(),
    "sketch.ask": door(),
    "sketch.end": door(query=1),
    "table.get": door(LAYER, '"key": "quay"', table=TABLE, key="quay"),
    "table.query": door(LAYER, '"key": "quay"', table=TABLE),
    "table.join": door(LAYER, '"key": "quay"', left=TABLE, right=TABLE, predicate="intersects"),
}
# Messages whose answer comes later than that of the next message.
SLOW = ("why.", "table.", "backtest.start")


@dataclass(frozen=True)
class Address:
    """One address with a method: it lets in with a status below 300 and an answer that has `shows`, else not."""

    needs: str
    path: str
    shows: str = ""
    method: str = "get"
    body: dict[str, Any] | None = None
    late: int = 0
    given: Callable[[int, str], bool] | None = None

    def lets_in(self, status: int, text: str) -> bool:
        """Return whether an answer gives what the door is about."""
        if self.given is not None:
            return self.given(status, text)
        return status < 300 and self.shows in text


ADDRESSES: dict[str, list[Address]] = {
    **{
        name: []  # shows nothing of a team, or is only the user's own; tests/webapp/test_access.py opens them
        for name in (
            *("alarms", "alarms-browser", "alarms-forget", "alarms-known", "alarms-test", "alive", "catalogue"),
            *(
                "coast",
                "health",
                "language",
                "login",
                "login-once",
                "logout",
                "map",
                "map-tile",
                "password",
                "plan-schema",
            ),
            *("replay", "replay-elements"),
        )
    },
    "layer": [
        Address(LAYER, "/layers/team", '"team"'),
        Address(EDIT_LAYER, "/layers/team", method="delete", late=2),
    ],
    "layer-cancel": [
        Address(EDIT_LAYER, "/layers/team/cancel", method="post", given=lambda status, _: status in (200, 409))
    ],
    "layer-features": [
        Address(LAYER, "/layers/team/features", "quay"),
        Address(
            EDIT_LAYER,
            "/layers/team/features",
            method="patch",
            body={"version": 0},
            given=lambda status, _: status in (200, 409),
        ),
    ],
    "layer-look": [Address(EDIT_LAYER, "/layers/team/look", method="post", body={"look": 1})],
    "layer-share": [Address(SHARE_LAYER, "/layers/yard/share", method="post", body={"team": None})],
    "layers": [Address(LAYER, "/layers/", '"name": "team"')],
    "metrics": [Address(FLAG, "/metrics")],
    "operations": [Address(FLAG, "/operations/")],
    "operations-figures": [Address(FLAG, "/operations/figures")],
    # No stream is stored: the answer says so of queries that are seen, and nothing of others.
    "replay-answers": [Address(SEE, "/replay/answers?queries={query}&from_us=1&to_us=2000000", "are not stored")],
    "replay-events": [Address(SEE, "/replay/events?from_us=1&to_us=2000000000000000", '"key":"quay"')],
    "replay-query-events": [Address(SEE, "/replay/events/{query}", '"key":"quay"')],
    "report": [
        Address(LAYER, "/reports/buses?layer=team&feature=quay&from=0&to=1000"),
        Address(SEE, "/reports/buses?query={query}&from=0&to=1000"),
    ],
    "shared": [],  # a door of guests: below
    "team": [Address(TEAM, "/teams/{team}/", "wharf")],
    "team-change": [
        Address(
            MANAGE,
            "/teams/{team}/change",
            method="post",
            body={"action": "put", "name": "third", "role": "viewer"},
            given=lambda _, text: "third" in text,
        )
    ],
    "team-channel": [Address(MANAGE, "/teams/{team}/channel", "wharf")],
    "team-subscription": [Address(MANAGE, "/teams/{team}/subscription", "wharf")],
    "teams": [Address(TEAM, "/teams/", "wharf")],
}
# Django's admin asks for its own permissions; it must agree with the websocket.
ADMIN = [
    Address(PERMIT, "/admin/webapp/query/{query}/change/", "team"),
    Address(PERMIT, "/admin/webapp/layer/{layer}/change/", "team"),
]
EDITORS = ("analyst", "admin")


@dataclass(frozen=True)
class Case:
    """Somebody, and what changes before they come to the doors."""

    who: str
    change: str

    def rights(self) -> set[str]:
        """Return the rights that the documentation promises, decided here anew by plain rules."""
        return {OPEN} | {right for right, given in self._given().items() if given and self.change != "deactivated"}

    def _given(self) -> dict[str, Any]:
        who, change = self.who, self.change
        role = who if who in ("viewer", *EDITORS) and change != "left" else ""
        theirs = role if change != "taken away" else ""
        owner, shared = who == "owner", change == "shared"
        everything = who == "staff" and change != "permissions"
        permitted = everything or (who == "clerk" and change == "permissions")
        elsewhere = who == "stranger" and change == "taken away"  # an admin of the team that has the layer now
        edits = owner or theirs in EDITORS or permitted
        manages = role == "admin" or everything
        return {
            SEE: owner or theirs or permitted or shared,
            LIST: owner or theirs or shared,
            EDIT: edits,
            ACT: edits or shared,
            LAYER: owner or theirs or permitted or elsewhere,
            EDIT_LAYER: edits or elsewhere,
            SHARE_LAYER: owner or theirs == "admin" or permitted or elsewhere,
            VIEW: owner or theirs,
            EDIT_VIEW: owner or theirs in EDITORS,
            MANAGE: manages,
            GIVE: role in EDITORS or everything,
            LINK: owner or (manages and change != "taken away"),
            TEAM: role or everything,
            FLAG: everything or who == "clerk",
            PERMIT: permitted,
        }


MEMBERS, OUTSIDE = ("viewer", "analyst", "admin"), ("stranger", "clerk")
EVERYBODY = ("owner", *MEMBERS, "staff", *OUTSIDE)
CASES = [
    *(Case(who, change) for change in ("nothing", "taken away", "deactivated") for who in EVERYBODY),
    *(Case(who, "left") for who in MEMBERS),
    *(Case(who, "permissions") for who in ("staff", "clerk")),
    *(Case(who, change) for change in ("shared", "sharing withdrawn") for who in OUTSIDE),
]

"""Who may send which message. What has no rule here is refused."""

from django.utils.translation import gettext

from webapp.rights.access import Asker, Guest
from webapp.words.refusals import Refused

# Which objects a message touches, in the words of `webapp.rights.access`, where the decision is made. "own" stands for
# what belongs to the connection or the user alone, "all" for what every user sees.
RULES: dict[str, str] = {
    "filter.check": "own",
    "query.register": "own; gives_to the team; layers; queries that a rule watches",
    "query.edit": "edits the query; shares it; gives_to the team; layers; queries that a rule watches",
    "query.cancel": "edits the query",
    "examples.show": "own",
    "query.list": "listed",
    "query.subscribe": "queries",
    "query.unsubscribe": "own",
    "query.snapshot": "own",
    "incident.list": "listed",
    "incident.get": "sees the query",
    "incident.acknowledge": "acts on the query's incidents",
    "incident.assign": "acts on the query's incidents",
    "incident.comment": "acts on the query's incidents",
    "incident.snooze": "acts on the query's incidents",
    "incident.wake": "acts on the query's incidents",
    "incident.close": "acts on the query's incidents",
    "why.object": "sees the query",
    "why.event": "sees the query",
    "why.incident": "sees the query",
    "backtest.start": "streams: all; layers; queries that a rule watches",
    "backtest.cancel": "own",
    "saved.list": "views",
    "saved.add": "own; gives_to the team",
    "saved.edit": "edits_view; gives_to the team",
    "saved.delete": "edits_view",
    "link.list": "links",
    "link.add": "owns the queries, or manages their team",
    "link.revoke": "links",
    "roles.subscribe": "queries",
    "roles.unsubscribe": "own",
    "regions.subscribe": "all",
    "regions.unsubscribe": "own",
    "view.subscribe": "all",
    "view.unsubscribe": "own",
    "sketch.ask": "all",
    "sketch.end": "own",
    "table.get": "layers; streams: all",
    "table.query": "layers; streams: all",
    "table.join": "layers; streams: all",
}
# What a guest, who opened a share link, may send.
OF_GUESTS = frozenset({"query.list", "query.subscribe", "query.unsubscribe", "query.snapshot"})


def check_allowed(kind: str, user: Asker) -> None:
    """Raise Refused unless somebody may send messages of a type."""
    if kind not in RULES or (isinstance(user, Guest) and kind not in OF_GUESTS):
        may = ", ".join(sorted(OF_GUESTS))
        raise Refused(
            "access",
            gettext("a connection by a share link may send %(may)s; got %(kind)s") % {"may": may, "kind": kind},
        )

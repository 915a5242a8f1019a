"""Which queries a connection is told of."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

import orjson
from django.utils.translation import gettext

from webapp.models import Query
from webapp.queries.listing import END, START, Position, QueryPage
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold_in

ALL, ASKED = "all", "asked"


class Listing:
    """The queries whose statuses a connection gets: all that the user may see, or only those that it has asked for.

    A connection that asks for the list page by page gets the statuses of the queries on these pages, and of those that
    come to lie between them later. It always gets those of the user's own queries.

    Parameters
    ----------
    every : bool
        Whether the connection gets the statuses of all queries.

    Attributes
    ----------
    told : set of int
        The queries of which the connection knows.
    """

    def __init__(self, every: bool = True) -> None:
        self.every = every
        self.told: set[int] = set()
        self._end = END if every else START
        self._spaces: list[str] | None = None

    @property
    def whole(self) -> bool:
        """Whether the connection has got the list to its end."""
        return self._end == END

    def take(self, page: QueryPage, search: str, spaces: list[str] | None, after: Position) -> None:
        """Record a page that the connection gets; a page of a search does not extend the list."""
        self.told.update(query.pk for query in page.queries)
        if self.every or search.strip():
            return
        if spaces != self._spaces and after == START:
            self._end, self._spaces = START, spaces
        if spaces == self._spaces and after <= self._end:
            self._end = max(self._end, page.end)

    def covers(self, document: dict, mine: bool) -> bool:
        """Return whether the connection gets the status of a query."""
        if self.every or mine or document["query"] in self.told:
            return True
        here = self._spaces is None or document["space"] in self._spaces
        return here and Position.of(mine, document["query"]) <= self._end

    def note(self, document: dict) -> None:
        """Record that the connection gets a status."""
        (self.told.discard if document["status"] == Query.CANCELLED else self.told.add)(document["query"])

    def learn(self, queries: Iterable[int]) -> None:
        """Record that the connection gets the statuses of queries."""
        self.told.update(queries)


def listing_of(query_string: bytes) -> Listing:
    """Return which queries a connection is told of first, given the query string of its address.

    Raises
    ------
    Refused
        Where ``queries`` is something else than "all" or "asked".

    Examples
    --------
    >>> listing_of(b"token=abc").every, listing_of(b"queries=asked").every
    (True, False)
    """
    (value,) = parse_qs(query_string.decode("latin-1")).get("queries", [ALL])[-1:]
    if value not in (ALL, ASKED):
        raise Refused(
            "fields",
            gettext("queries in the address must be %(all)s or %(asked)s; got %(value)s")
            % {"all": ALL, "asked": ASKED, "value": f"{value!r:.80}"},
        )
    return Listing(every=value == ALL)


def status_frame(document: dict[str, Any], mine: bool, seen: bool, examples: bool = True) -> str:
    """Return the frame ``query.status`` for one connection, given the query's document.

    It says no more than cancelled to a user who may not see the query (`seen`), and cancelled of an example to a user
    who does not see the `examples`.
    """
    if not seen:
        hidden: dict[str, Any] = {
            "name": "",
            "plan": {},
            "error": gettext("no longer shared"),
            "warning": None,
            "warnings": [],
            "left_out": None,
            "owner": None,
            "team": None,
        }
        document = document | hidden | {"status": Query.CANCELLED}
    elif document["example"] and not examples:
        document = document | {"status": Query.CANCELLED, "error": gettext("the examples were removed")}
    return orjson.dumps(retold_in({"type": "query.status", **document, "mine": mine})).decode()

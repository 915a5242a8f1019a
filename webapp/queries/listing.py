"""The list of the queries that a user may see, page by page."""

from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q

from webapp.models import Query
from webapp.rights.access import Asker, rights_of

# Most queries of one page: their plans may be long, and all of a page is one message.
PAGE_QUERIES = 100


class Position(NamedTuple):
    """A place in the list: a user's own queries come first, then those of others, each ordered by number.

    Examples
    --------
    >>> Position.of(mine=True, query=9) < Position.of(mine=False, query=2) < END
    True
    """

    part: int
    query: int

    @classmethod
    def of(cls, mine: bool, query: int) -> "Position":
        """Return the position of a query."""
        return cls(0 if mine else 1, query)

    def document(self) -> dict:
        """Return the position as clients get it, and give it back."""
        return {"mine": self.part == 0, "query": self.query}


START, END = Position(0, 0), Position(2, 0)


@dataclass(frozen=True)
class QueryPage:
    """A page of the list.

    Parameters
    ----------
    queries : list of Query
        In the order of the list, with their owners.
    total : int
        Number of queries in the whole list.
    end : Position
        Where the next page begins: the last query of this one, or `END`.
    """

    queries: list[Query]
    total: int
    end: Position


def page_of(
    user: Asker, search: str = "", spaces: list[str] | None = None, after: Position = START, limit: int = 100
) -> QueryPage:
    """Return a page of the list of a user.

    Parameters
    ----------
    user : User
    search : str
        Words, each of which is in the name of a listed query, of its owner or of its stream.
    spaces : list of str, optional
        Names of the spaces whose queries are listed; by default all.
    after : Position
        The page begins after it.
    limit : int
        Most queries of the page.
    """
    seen = rights_of(user).listed()
    if spaces is not None:
        seen = seen.filter(space__in=spaces)
    for word in search.split():
        seen = seen.filter(Q(name__icontains=word) | Q(owner__username__icontains=word) | Q(stream__icontains=word))
    found: list[Query] = []
    for part, queries in enumerate((seen.filter(owner=user.pk), seen.exclude(owner=user.pk))):
        if after.part <= part:
            rest = queries.filter(pk__gt=after.query) if after.part == part else queries
            found += rest.select_related("owner").order_by("pk")[: limit + 1 - len(found)]
    page = found[:limit]
    end = Position.of(page[-1].owner_id == user.pk, page[-1].pk) if len(found) > limit else END
    return QueryPage(page, seen.count(), end)

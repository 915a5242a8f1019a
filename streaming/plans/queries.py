"""The kinds of continuous queries.

References
----------
BBoxDB Streams (2022), sections 4.4.1 (continuous range queries) and 4.4.2 (continuous spatial join queries).
"""

from dataclasses import dataclass

from streaming.plans.parts import Box, Enlargement, Filter, UserFilter

KINDS = ("range", "join", "knn")
REPORTS = ("inside", "outside")
EMITS = ("changes", "membership", "all")
SOURCES = ("layer", "stream", "stored")
# No layer's name begins with this.
STORED_PREFIX = "stored:"
# OGC 06-103r4 (simple features), section 6.1.15; besides, a distance (dwithin), and the boxes alone (boxes).
PREDICATES = (
    "intersects",
    "within",
    "contains",
    "covers",
    "covered_by",
    "touches",
    "crosses",
    "overlaps",
    "equals",
    "disjoint",
    "dwithin",
    "boxes",
)


@dataclass(frozen=True)
class RangePlan:
    """A continuous range query.

    Parameters
    ----------
    stream : str
        The stream whose elements it looks at.
    area : tuple of float, length 2n
        Where it is registered (alpha): elements outside of it are not looked at.
    compare : tuple of float, length 2n
        The query box (tau).
    report : {"inside", "outside"}
        Report the elements of the area whose transformed box intersects `compare`, or the others (beta).
    transform : tuple of Enlargement
        Applied in order to the element's box before it is compared (theta).
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        Each lets an element pass or not.
    emit : {"changes", "membership", "all"}
        ``changes``: the answer is kept incrementally, a change a tuple; ``membership``: likewise, but of what stays
        in the answer nothing is told; ``all``: each matching element is reported as it comes, and nothing is kept.
    """

    stream: str
    area: Box
    compare: Box
    report: str = "inside"
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "range"


@dataclass(frozen=True)
class Partners:
    """What the elements of a stream are joined with, and how.

    Parameters
    ----------
    source : {"layer", "stream", "stored"}
        Features of a layer, the last known elements of a stream, or the stored elements of one (which may be the
        query's own), as of the last snapshot.
    name : str
        Of the layer or stream.
    predicate : str
        One of `PREDICATES`: what must hold between the element and its partner. The element stands for its transformed
        box where the plan has transformations, otherwise for its geometry, or its box where it has none.
    distance : float
        Of ``dwithin``: metres in a space with longitude and latitude, the unit of the first dimension elsewhere.
    where : str
        CQL2 text over the partner's properties (lambda); empty for none.
    filters : tuple of Filter
        Each lets a partner pass or not.
    pair_filters : tuple of UserFilter
        Each lets a pair pass or not.
    """

    source: str
    name: str
    predicate: str = "intersects"
    distance: float = 0.0
    where: str = ""
    filters: tuple[Filter, ...] = ()
    pair_filters: tuple[UserFilter, ...] = ()

    @property
    def layer(self) -> str:
        """The name under which the engine knows the features of a layer, or a snapshot of stored elements."""
        return f"{STORED_PREFIX}{self.name}" if self.source == "stored" else self.name


@dataclass(frozen=True)
class JoinPlan:
    """A continuous spatial join: its answer is a set of pairs of an element and a partner.

    Parameters
    ----------
    stream : str
        The stream whose elements it looks at.
    partners : Partners
    area : tuple of float, length 2n
        Where it is registered (alpha): elements outside of it are not looked at.
    transform : tuple of Enlargement
        Applied in order to the element's box before it is compared (theta).
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        Each lets an element pass or not.
    emit : {"changes", "membership", "all"}
        ``changes``: the answer is kept incrementally, a change a tuple; ``membership``: likewise, but of pairs that
        stay in the answer nothing is told; ``all``: each matching pair is reported as it comes, and nothing is kept.
    """

    stream: str
    partners: Partners
    area: Box
    transform: tuple[Enlargement, ...] = ()
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "join"

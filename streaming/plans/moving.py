"""Plans of moving ranges, nearest neighbours and aggregates: several servers each know a part of their answers.

References
----------
PLACE* (2007), sections 4 and 5: range and kNN queries whose focal objects move, and aggregates over ranges.
"""

import math
from dataclasses import dataclass

from streaming.plans.parts import Box, Filter
from streaming.plans.queries import JoinPlan, RangePlan


@dataclass(frozen=True)
class Focus:
    """Where a query is: at a focal object, which it follows, or at a fixed place.

    Parameters
    ----------
    stream : str
        The stream of the focal object; the query's own stream if it is missing. A fixed place has none.
    key : str
        The key of the focal object in its stream. A fixed place has none.
    at : tuple of float
        The fixed place: its coordinates in the first two dimensions, or in the only one.
    """

    stream: str = ""
    key: str = ""
    at: tuple[float, ...] = ()


@dataclass(frozen=True)
class Circle:
    """A circle about the focus.

    Parameters
    ----------
    radius : float
        Above 0; metres in a space with longitude and latitude, units of the first dimensions elsewhere.
    """

    radius: float


@dataclass(frozen=True)
class Rectangle:
    """A box about the focus.

    Parameters
    ----------
    half_widths : tuple of float, length n
        Above 0; null for no bound. The first two are metres in a space with longitude and latitude; all others are in
        the unit of their dimension.
    """

    half_widths: tuple[float, ...]


@dataclass(frozen=True)
class Carried:
    """A polygon that the focus carries along, in the first two dimensions.

    Parameters
    ----------
    polygon : tuple of tuple of float
        The vertices of a simple ring, which is not closed, as offsets from the focus, east and north in metres in a
        space with longitude and latitude, in the dimensions' units elsewhere.
    """

    polygon: tuple[tuple[float, float], ...]


Shape = Circle | Rectangle | Carried


@dataclass(frozen=True)
class MovingRangePlan:
    """A continuous range query whose range lies about a focus.

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    focus : Focus
        The object that the query follows, which is never in its answer, or the place where it is.
    shape : Circle or Rectangle or Carried
        The range about the focus; elements whose box meets it are in the answer.
    area : tuple of float, length 2n
        The area in which elements are evaluated; the whole space if it is missing.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: each entry, exit and change of a member is a result tuple; ``membership``: only entries and exits.
    """

    stream: str
    focus: Focus
    shape: Shape
    area: Box
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "range"


@dataclass(frozen=True)
class NearestPlan:
    """A continuous query for the nearest neighbours of a focus (kNN).

    Parameters
    ----------
    stream : str
        The stream whose elements the query evaluates.
    focus : Focus
        The object that the query follows, which is never in its answer, or the place where it is.
    k : int
        The number of neighbours, 1 to 1000. The answer has fewer if there are no more.
    area : tuple of float, length 2n
        The area in which elements are evaluated; the whole space if it is missing.
    max_distance : float
        Elements that are farther away are ignored. Above 0; metres in a space with longitude and latitude, units of the
        first dimensions elsewhere; null for no limit.
    alpha : float
        How much larger the search region is than the answer, 0 to 10: 0.2 makes it a fifth larger.
    where : str
        CQL2 text over the element's properties; empty for none.
    filters : tuple of Filter
        An element must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: each entry, exit and change of element, distance or rank is a result tuple; ``membership``: only
        entries and exits.
    """

    stream: str
    focus: Focus
    k: int
    area: Box
    max_distance: float = math.inf
    alpha: float = 0.2
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: str = "changes"
    kind: str = "knn"


@dataclass(frozen=True)
class Threshold:
    """A limit of an aggregate's value that raises an event.

    Parameters
    ----------
    above : float or None
        The threshold is crossed while the value is above this. A threshold has this or `below`.
    below : float or None
        The threshold is crossed while the value is below this.
    for_s : float
        The value must stay beyond the limit for this long [s] before the threshold counts as crossed.
    """

    above: float | None = None
    below: float | None = None
    for_s: float = 0.0

    @property
    def name(self) -> str:
        """The name of the threshold in result tuples.

        Examples
        --------
        >>> Threshold(above=20.0).name, Threshold(below=0.5, for_s=300.0).name
        ('above 20', 'below 0.5 for 300 s')
        """
        limit = f"below {_number(self.below)}" if self.above is None else f"above {_number(self.above)}"
        return f"{limit} for {_number(self.for_s)} s" if self.for_s else limit


@dataclass(frozen=True)
class Aggregate:
    """A value of all elements of an answer, or of each group of them.

    Parameters
    ----------
    function : {"count", "min", "max", "sum", "avg"}
        The function to compute.
    property : str
        The property of elements over which it is computed. All functions but ``count`` need this or a dimension.
    dimension : str
        The dimension of the space over which it is computed, by the middle of the element's box.
    group_by : str
        The property whose values are the groups; empty for one group.
    thresholds : tuple of Threshold
        Limits that raise events.
    """

    function: str
    property: str = ""
    dimension: str = ""
    group_by: str = ""
    thresholds: tuple[Threshold, ...] = ()


@dataclass(frozen=True)
class AggregatePlan:
    """A continuous aggregate over the answer of a range query.

    Parameters
    ----------
    range : RangePlan or MovingRangePlan
    aggregate : Aggregate
    """

    range: RangePlan | MovingRangePlan
    aggregate: Aggregate

    @property
    def stream(self) -> str:
        """The stream of the range query."""
        return self.range.stream

    @property
    def kind(self) -> str:
        """The kind of the range query."""
        return self.range.kind

    @property
    def area(self) -> Box:
        """The area of the range query."""
        return self.range.area

    @property
    def where(self) -> str:
        """The CQL2 text of the range query."""
        return self.range.where

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filters of the range query."""
        return self.range.filters

    @property
    def emit(self) -> str:
        """``changes``: each change of a group's value is reported; ``membership``: only groups that come or go are."""
        return self.range.emit


Plan = RangePlan | JoinPlan | MovingRangePlan | NearestPlan | AggregatePlan


def _number(value):
    """Return a number as people write it: 20 for 20.0."""
    return repr(float(value)).removesuffix(".0")

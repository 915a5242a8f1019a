"""Continuous aggregates over the answers of range queries: the plan, from JSON and back.

References
----------
PLACE* (2007), section 4.2: aggregates over ranges.
"""

from dataclasses import dataclass

from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.parts import Box, Filter
from streaming.kinds.range.plan import RangePlan

FUNCTIONS = ("count", "min", "max", "sum", "avg")
AGGREGATE_KEYS = ("function", "property", "dimension", "group_by", "thresholds")
THRESHOLD_KEYS = ("above", "below", "for_s")
MAX_THRESHOLDS = 8
MAX_FOR_S = 31_536_000.0


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
        word, value = ("below", self.below) if self.above is None else ("above", self.above)
        assert value is not None, "a threshold has one of the two"
        limit = f"{word} {_number(value)}"
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


def _number(value: float) -> str:
    """Return a number as people write it: 20 for 20.0."""
    return repr(float(value)).removesuffix(".0")

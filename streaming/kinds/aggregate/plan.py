"""Continuous aggregates over the answers of range queries: the plan, from JSON and back.

References
----------
PLACE* (2007), section 4.2: aggregates over ranges.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any

from streaming.errors import InvalidPlan
from streaming.kinds import declared
from streaming.kinds.aggregate.schema import threshold_schema
from streaming.kinds.moving_range.plan import MovingRangePlan
from streaming.kinds.parts import Box, Filter, check_keys, given, parse_text
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.schema import list_of
from streaming.kinds.values import PROPERTY_NAME, FiniteNumber, PlanPart, Reading, choice
from streaming.language import gettext
from streaming.spaces import Space

FUNCTIONS = ("count", "min", "max", "sum", "avg")
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

    above: Annotated[float | None, FiniteNumber(null=True)] = None
    below: Annotated[float | None, FiniteNumber(null=True)] = None
    for_s: Annotated[float, FiniteNumber(least=0, most=MAX_FOR_S)] = 0.0

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


def _dimension(value: Any, reading: Reading) -> str:
    dimensions = [dimension.name for dimension in reading.space.dimensions]
    if parse_text(value, reading.name) not in dimensions:
        raise InvalidPlan(
            "aggregate: dimension must be one of %(dimensions)s; got %(dimension)s",
            dimensions=", ".join(dimensions),
            dimension=f"{value!r:.200}",
        )
    return str(value)


def _thresholds(documents: Any, reading: Reading) -> tuple[Threshold, ...]:
    if not isinstance(documents, list) or len(documents) > MAX_THRESHOLDS:
        raise InvalidPlan(
            "thresholds must be a list of at most %(max_thresholds)s objects; got %(documents)s",
            max_thresholds=MAX_THRESHOLDS,
            documents=f"{documents!r:.200}",
        )
    thresholds = tuple(_threshold(document, reading.space) for document in documents)
    if len(set(thresholds)) < len(thresholds):
        names = ", ".join(threshold.name for threshold in thresholds)
        raise InvalidPlan("thresholds must differ from each other; got %(names)s", names=names)
    return thresholds


def _threshold(document: Any, space: Space) -> Threshold:
    if not isinstance(document, dict):
        raise InvalidPlan(
            "a threshold must be an object with above or below; got %(document)s", document=f"{document!r:.200}"
        )
    check_keys(document, declared.keys_of(Threshold), gettext("a threshold"))
    named = given(document, ("above", "below"))
    if len(named) != 1:
        raise InvalidPlan(
            "a threshold must have one of above, below; got %(named)s", named=", ".join(named) or gettext("none")
        )
    return Threshold(**declared.read(Threshold, document, space, gettext("a threshold: %(named)s") % {"named": ""}))


def _threshold_document(threshold: Threshold, space: Space) -> dict[str, Any]:
    document = declared.write(threshold, space)
    return document if threshold.for_s else {name: document[name] for name in document if name != "for_s"}


PROPERTY = replace(PROPERTY_NAME, null=True, writes=lambda name, _: name or None)
DIMENSION = PlanPart(
    reads=_dimension, writes=lambda name, _: name or None, described={"type": "string", "minLength": 1}, null=True
)
THRESHOLDS = PlanPart(
    reads=_thresholds,
    writes=lambda thresholds, space: [_threshold_document(one, space) for one in thresholds] or None,
    described=list_of(MAX_THRESHOLDS, "threshold"),
    defines=lambda: {"threshold": threshold_schema(declared.definition(Threshold))},
)


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

    function: Annotated[str, choice("function", FUNCTIONS)]
    property: Annotated[str, PROPERTY] = ""
    dimension: Annotated[str, DIMENSION] = ""
    group_by: Annotated[str, PROPERTY] = ""
    thresholds: Annotated[tuple[Threshold, ...], THRESHOLDS] = ()


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

"""A kind of query for the tests: the elements whose middle lies in a disc about a fixed place, in flat units."""

from dataclasses import dataclass

import numpy as np

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import common, emitted, opening
from streaming.kinds.parts import check_keys, parse_number
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.schema import AMOUNT, Schema, object_schema, of_kind
from streaming.operators.spatial_join import Pairs


@dataclass(frozen=True)
class DiscPlan:
    """A disc.

    Parameters
    ----------
    stream : str
        The stream.
    x : float
    y : float
    radius : float
    """

    stream: str
    x: float
    y: float
    radius: float
    where: str = ""
    filters: tuple = ()
    emit: str = "changes"
    kind: str = "disc"

    @property
    def area(self):
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


class DiscKind(Kind[DiscPlan]):
    name, written, plan_class = "disc", "disc", DiscPlan
    refinement = "tests.plans.disc:Discs"

    def parse(self, document, space):
        check_keys(document, ("stream", "kind", "x", "y", "radius", "where", "filters", "emit"), "a disc")
        if space.geographic:
            raise InvalidPlan(f"a disc needs a flat space; got {space.name!r}")
        numbers = {name: parse_number(document.get(name), name) for name in ("x", "y", "radius")}
        return DiscPlan(**numbers, **common(document, space))

    def document(self, plan, space):
        return opening(plan) | {"x": plan.x, "y": plan.y, "radius": plan.radius} | emitted(plan, space)

    def words(self, document, unit):
        return f"within {document['radius']:g} of {document['x']:g}, {document['y']:g}"

    def definition(self) -> Schema:
        return object_schema(
            DiscPlan, {"filters": {}, "radius": AMOUNT, "x": {"type": "number"}, "y": {"type": "number"}}
        )

    def condition(self):
        return of_kind("disc")

    def evaluation(self, plan):
        return Evaluation.REGIONAL


class Discs:
    """The `Refinement` of discs: a range each, then the distance from the middle of the box."""

    def __init__(self, plans, space, features_of):
        self._queries = np.array(sorted(plans), dtype=np.int64)
        chosen = [plans[query] for query in self._queries.tolist()]
        self.ranges = [
            RangePlan(p.stream, p.area, p.area, where=p.where, filters=p.filters, emit=p.emit) for p in chosen
        ]
        self._discs = np.array([(p.x, p.y, p.radius) for p in chosen])

    def of(self, number):
        return self._queries[[number]]

    def range_of(self, queries):
        return np.searchsorted(self._queries, queries)

    def refined(self, elements, row, number, failures):
        near = self._near(elements.bounds[row], number)
        return Pairs.without_partners(row[near], self._queries[number[near]])

    def charge(self, failures, seconds):
        failures.charge(self._queries, seconds)

    def lies(self, elements, pairs):
        return self._near(elements.bounds[pairs.row], self.range_of(pairs.query))

    def reached(self, bounds):
        return np.zeros(len(bounds), dtype=bool)

    def _near(self, bounds, number):
        middle = (bounds[:, :2] + bounds[:, 2:]) / 2
        return np.hypot(*(middle - self._discs[number, :2]).T) <= self._discs[number, 2]

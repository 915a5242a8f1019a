"""A kind of query for the tests: the elements whose middle lies in a disc about a fixed place, in flat units."""

import copy
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.range.plan import RangePlan
from streaming.kinds.values import AMOUNT, FiniteNumber
from streaming.operators.numbered import Numbered
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
    x: Annotated[float, FiniteNumber()]
    y: Annotated[float, FiniteNumber()]
    radius: Annotated[float, AMOUNT]
    where: str = ""
    filters: tuple = ()
    emit: str = "changes"
    kind: str = "disc"

    @property
    def area(self):
        return self.x - self.radius, self.y - self.radius, self.x + self.radius, self.y + self.radius


class DiscKind(Kind[DiscPlan]):
    name, written, plan_class = "disc", "disc", DiscPlan
    called = "a disc"
    refinement = "tests.plans.disc:Discs"

    def completed(self, fields, document, space):
        if space.geographic:
            raise InvalidPlan(f"a disc needs a flat space; got {space.name!r}")
        return fields

    def words(self, document, unit):
        return f"within {document['radius']:g} of {document['x']:g}, {document['y']:g}"

    def evaluation(self, plan):
        return Evaluation.REGIONAL


class Discs:
    """The `Refinement` of discs: a range each, then the distance from the middle of the box."""

    def __init__(self, plans, space):
        self._use(Numbered.of(plans), np.array([(p.x, p.y, p.radius) for p in plans]).reshape(-1, 3))

    def _use(self, column, discs):
        self.range, self._discs, self._kept = column, discs, np.ones(len(discs), dtype=bool)

    @classmethod
    def _of(cls, column, discs):
        made = cls.__new__(cls)
        made._use(column, discs)
        return made

    @staticmethod
    def range_of(plan):
        return RangePlan(plan.stream, plan.area, plan.area, where=plan.where, filters=plan.filters, emit=plan.emit)

    def take(self, queries):
        column, used = self.range.take(queries).used()
        return self._of(column, self._discs[queries]), used

    @classmethod
    def together(cls, parts):
        column, source = Numbered.together([part.range for part in parts])
        return cls._of(column, np.concatenate([part._discs for part in parts])), source

    def masked(self, kept):
        masked = copy.copy(self)
        masked._kept = kept
        return masked

    def of(self, number):
        return np.flatnonzero((self.range.number == number) & self._kept)

    def refined(self, elements, row, number, features_of, failures):
        pair, query = np.nonzero((number[:, None] == self.range.number) & self._kept)
        near = self._near(elements.bounds[row[pair]], query)
        return Pairs.without_partners(row[pair[near]], query[near])

    def charge(self, failures, ranges, seconds):
        for number, spent in zip(ranges.tolist(), seconds.tolist(), strict=True):
            asking = self.of(number)
            failures.charge(asking, np.full(len(asking), spent / len(asking)))

    def lies(self, elements, pairs, features_of):
        return self._near(elements.bounds[pairs.row], pairs.query)

    def reached(self, bounds, features_of):
        return np.zeros(len(bounds), dtype=bool)

    def _near(self, bounds, query):
        middle = (bounds[:, :2] + bounds[:, 2:]) / 2
        return np.hypot(*(middle - self._discs[query, :2]).T) <= self._discs[query, 2]

"""The distributed queries of a micro-batch, placed before and now: the same for all regions and the assembler.

A process places and indexes them once a batch, however many regions it serves.
"""

import functools

import numpy as np

from streaming.operators.distributed import PlacedQueries, QueryBorders, SomeQueries
from streaming.servers.control.step import ControlStep
from streaming.servers.ways.moving.focals import Focals, carried, lasting, shifted


class Placement:
    """The distributed queries before and now, and which of them differ.

    Parameters
    ----------
    before, after : Focals
        The focal objects without and with the micro-batch.
    control : ControlStep

    Attributes
    ----------
    were, are : PlacedQueries
        The queries, placed where they were and where they are.
    """

    def __init__(self, before: Focals, after: Focals, control: ControlStep) -> None:
        self._control = control
        self.were: PlacedQueries = before.placed(control.before)
        self.are: PlacedQueries = after.placed(control.after)

    def serves(self, control: ControlStep) -> bool:
        """Tell whether this is the placement for a control step."""
        mine = self._control
        same = control.before is mine.before and control.after is mine.after
        return same and np.array_equal(control.applied.changed, mine.applied.changed)

    @functools.cached_property
    def is_shifted(self) -> np.ndarray:
        """Which queries cover another place than before, or are new: bool of shape (Q,)."""
        return shifted(self.were, self.are, self._control)

    @functools.cached_property
    def shifted(self) -> np.ndarray:
        """The positions of these queries, ascending."""
        return np.flatnonzero(self.is_shifted)

    @functools.cached_property
    def is_carried(self) -> np.ndarray:
        """Which queries moved with an infinite search region, so that they cover the same: bool of shape (Q,)."""
        return carried(self.were, self.are, self._control)

    @functools.cached_property
    def still(self) -> np.ndarray:
        """The numbers of the queries that cover the same place as before, ascending."""
        return self._control.after.distributed_ids[~self.is_shifted]

    @functools.cached_property
    def _lasting(self) -> tuple[np.ndarray, np.ndarray]:
        """The positions, before and now, of the moving ranges whose plan did not change."""
        before, now = lasting(self._control)
        ranges = np.isin(now, self.are.queries.ranges)
        return before[ranges], now[ranges]

    @functools.cached_property
    def _bordered(self) -> np.ndarray:
        """Which of these ranges are matched at their borders with objects that moved; see `DistributedQueries`."""
        return self.are.queries.bordered[self._lasting[1]]

    @functools.cached_property
    def borders(self) -> QueryBorders:
        """The borders of lasting ranges that report membership alone, which objects may cross."""
        before, now = self._lasting
        return self.are.borders(self.were, before[self._bordered], now[self._bordered])

    @functools.cached_property
    def shifted_borders(self) -> QueryBorders:
        """The borders of lasting ranges that shifted, which may cross objects."""
        before, now = self._lasting
        moved = self.is_shifted[now]
        return self.are.borders(self.were, before[moved], now[moved])

    @functools.cached_property
    def asked_before(self) -> SomeQueries:
        """The queries as they were, for objects that come or go; without aggregates, whose members are stored."""
        return self.were.some(self._unstored)

    @functools.cached_property
    def listed_before(self) -> SomeQueries:
        """Those of them that have no border in `borders`, for objects that stay."""
        return self.were.some(np.setdiff1d(self._unstored, self._lasting[0][self._bordered]))

    @functools.cached_property
    def left(self) -> SomeQueries:
        """The moving ranges as they were that ended, or that got another plan: all objects may leave these."""
        ids = self._control.before.distributed_ids
        gone = np.flatnonzero(~np.isin(ids, self.still))
        return self.were.some(np.setdiff1d(np.intersect1d(gone, self.were.queries.ranges), self._lasting[0]))

    @functools.cached_property
    def asked(self) -> SomeQueries:
        """The queries as they are, for objects that come or go."""
        return self.are.some(np.arange(len(self.are.queries)))

    @functools.cached_property
    def listed(self) -> SomeQueries:
        """Those of them that have no border in `borders`, for objects that stay."""
        return self.are.some(np.setdiff1d(np.arange(len(self.are.queries)), self._lasting[1][self._bordered]))

    @functools.cached_property
    def begun(self) -> SomeQueries:
        """The queries as they are that all objects may enter: those that shifted, without lasting ranges."""
        return self.are.some(np.setdiff1d(self.shifted, self._lasting[1]))

    @functools.cached_property
    def _unstored(self) -> np.ndarray:
        return np.setdiff1d(np.arange(len(self.were.queries)), self.were.queries.aggregates)

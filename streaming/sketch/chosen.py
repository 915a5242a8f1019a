"""Which leaves a selection chooses: whole ones, and ones that it cuts.

Of a leaf that is cut, three things are known: how many of its elements match at least and at most, for certain, and an
estimate of their part. The estimate takes elements as spread evenly over the leaf's box and times, and over its values
as `bounds.part_of` says; the conditions count as independent.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from streaming.operators.runs import expand
from streaming.sketch.areas import PreparedArea
from streaming.sketch.bounds import LeafSummary, range_parts
from streaming.sketch.leaves import Leaves, no_leaves, together
from streaming.sketch.levels import bin_us
from streaming.sketch.once import Once
from streaming.sketch.runs import LeafRun
from streaming.sketch.selection import EVERYTHING, Selection, TimeIntervals, ValueRange
from streaming.sketch.settings import SketchSettings
from streaming.sketch.sketch import Sketch

Rows: TypeAlias = np.ndarray | slice
# What a condition says of leaves: which touch what it asks for; and which lie in it or, if they are cut already, the
# `CutLeaves` of those that touch it.
Judged = tuple[np.ndarray, Any]
_ALL = slice(None)
_NONE = np.empty(0, dtype=np.int64)
# An index by cell is better than looking at all leaves of the times if these are more than this part of a run.
PART_BY_CELL = 0.25


@dataclass(frozen=True)
class CutLeaves:
    """What is known of the C leaves that a selection cuts.

    Parameters
    ----------
    share : ndarray of float64, shape (C,)
        An estimate of the part of the elements that match.
    least, most : ndarray of float64, shape (C,)
        The bounds of that part, for certain.
    doubt : ndarray of float64, shape (C,)
        The standard deviation of the share as far as it depends on how values are distributed within the leaf; 0 if no
        feature's range cuts it.
    """

    share: np.ndarray
    least: np.ndarray
    most: np.ndarray
    doubt: np.ndarray

    def take(self, rows: np.ndarray) -> "CutLeaves":
        """Return what is known of some of the leaves."""
        return CutLeaves(*(getattr(self, field.name)[rows] for field in fields(CutLeaves)))

    @classmethod
    def together(cls, cuts: Sequence["CutLeaves"]) -> "CutLeaves":
        """Return what is known of the leaves of several."""
        if len(cuts) == 1:
            return cuts[0]
        return cls(*(np.concatenate([getattr(cut, field.name) for cut in cuts]) for field in fields(CutLeaves)))


NO_CUT = CutLeaves(*(np.empty(0) for _ in range(4)))


@dataclass(frozen=True)
class ChosenPart:
    """The chosen leaves of one run: positions, so that only the columns that a question needs are read.

    Parameters
    ----------
    leaves : Leaves
    whole : ndarray of int64, or slice
        The leaves all of whose elements match.
    partial : ndarray of int64, shape (C,)
        The leaves that the selection cuts.
    cut : CutLeaves
    """

    leaves: Leaves
    whole: Rows
    partial: np.ndarray
    cut: CutLeaves


@dataclass(frozen=True)
class ChosenLeaves(Once):
    """The leaves of a sketch that a selection chooses.

    Parameters
    ----------
    settings : SketchSettings
    selection : Selection
    parts : tuple of ChosenPart
    runs : tuple of LeafRun
        From which the leaves come, if no condition tells values apart and some are therefore merged over all values.
    """

    settings: SketchSettings
    selection: Selection
    parts: tuple[ChosenPart, ...]
    runs: tuple[LeafRun, ...] = ()

    def by_value(self, feature: str) -> "ChosenLeaves":
        """Return the same choice of leaves that tell the values of a feature apart."""
        return self.once(("by_value", feature), lambda: self._by_value(feature)) if self.runs else self

    def _by_value(self, feature: str) -> "ChosenLeaves":
        conditions, position = _Conditions(self.settings, self.selection), self.settings.position(feature)
        parts = tuple(part for run in self.runs for part in conditions.merged(run, position))
        return ChosenLeaves(self.settings, self.selection, parts or nothing_of(self.settings))

    @functools.cached_property
    def cut(self) -> CutLeaves:
        """What is known of the leaves that are cut, in the order of `partial`."""
        return CutLeaves.together([NO_CUT, *(part.cut for part in self.parts if len(part.partial))])

    def whole(self, name: str, *rows: int) -> np.ndarray:
        """Return a column of the leaves that match as a whole; `rows` choose the feature or the pair."""
        return _joined([getattr(part.leaves, name)[(*rows, part.whole)] for part in self.parts])

    def partial(self, name: str, *rows: int) -> np.ndarray:
        """Return a column of the leaves that the selection cuts."""
        return _joined([getattr(part.leaves, name)[(*rows, part.partial)] for part in self.parts])

    def column(self, name: str, *rows: int) -> np.ndarray:
        """Return a column of all chosen leaves: first those that match as a whole, then those that are cut."""
        if not any(len(part.partial) for part in self.parts):
            return self.whole(name, *rows)
        return np.concatenate([self.whole(name, *rows), self.partial(name, *rows)])

    @functools.cached_property
    def share(self) -> np.ndarray:
        """The estimated part of each leaf's elements that match, in the order of `column`: 1 for whole leaves."""
        whole = sum(len(part.leaves.count[part.whole]) for part in self.parts)
        return np.concatenate([np.ones(whole), self.cut.share])

    @property
    def leaves(self) -> int:
        """How many leaves are chosen, whole or cut."""
        return sum(len(part.leaves.count[part.whole]) + len(part.partial) for part in self.parts)

    def taken(self) -> tuple[Leaves, Leaves]:
        """Return the leaves that match as a whole, and those that are cut, with all columns."""
        nothing = no_leaves(self.settings)
        whole = together([nothing, *(part.leaves.take(part.whole) for part in self.parts)])
        return whole, together([nothing, *(part.leaves.take(part.partial) for part in self.parts)])


def choose(sketch: Sketch, selection: Selection = EVERYTHING, merge: bool = True) -> ChosenLeaves:
    """Return the leaves that a selection chooses.

    Parameters
    ----------
    sketch : Sketch
    selection : Selection
    merge : bool
        Whether leaves may come merged if no condition tells them apart, which is quicker.

    Raises
    ------
    InvalidSketch
        If an area is not valid, or a feature is not sketched.
    """
    if merge and not (selection.areas or selection.ranges) and selection.times is None:
        return sketch.once("everything", lambda: _choice(sketch, selection, merge))
    return _choice(sketch, selection, merge)


def _choice(sketch: Sketch, selection: Selection, merge: bool) -> ChosenLeaves:
    conditions = _Conditions(sketch.settings, selection)
    merged = merge and not selection.areas and not selection.ranges
    of_run = conditions.merged if merged else conditions.leaves
    parts = tuple(part for run in sketch.asked for part in of_run(run))
    return ChosenLeaves(
        sketch.settings, selection, parts or nothing_of(sketch.settings), sketch.asked if merged else ()
    )


def nothing_of(settings: SketchSettings) -> tuple[ChosenPart]:
    """Return the parts of a choice of nothing."""
    return (ChosenPart(no_leaves(settings), slice(0, 0), _NONE, NO_CUT),)


class _Conditions:
    """The conditions of a selection, ready to be compared with many leaves."""

    def __init__(self, settings: SketchSettings, selection: Selection) -> None:
        self._settings, self._times = settings, selection.times
        self._areas = [PreparedArea(area, settings) for area in selection.areas]
        self._ranges = [(settings.position(one.feature), one) for one in selection.ranges]

    def merged(self, run: LeafRun, feature: int | None = None) -> list[ChosenPart]:
        """Return the chosen parts of a run, merged as far as may be, if times are the only conditions."""
        if self._times is None:
            return [ChosenPart(run.whole if feature is None else run.by_value(feature), _ALL, _NONE, NO_CUT)]
        rolled = run.by_time if feature is None else run.by_time_and_value(feature)
        parts = self._among(rolled, self._rows_by_time(rolled), [])
        if not parts or not len(parts[0].partial):
            return parts
        # In a time bin that is cut, each leaf knows best when its own elements came.
        at = np.unique(rolled.start_us[parts[0].partial])
        start, stop = (np.searchsorted(run.leaves.start_us, at, side) for side in ("left", "right"))
        whole = parts[0].whole
        whole = np.arange(whole.start, whole.stop) if isinstance(whole, slice) else whole
        whole = whole[~np.isin(rolled.start_us[whole], at)]
        inner = [ChosenPart(rolled, whole, _NONE, NO_CUT)] if len(whole) else []
        return inner + self._among(run.leaves, expand(start, stop - start)[1], [])

    def leaves(self, run: LeafRun) -> list[ChosenPart]:
        """Return the chosen parts of a run, none of whose leaves are merged."""
        leaves, rows = run.leaves, self._rows_by_time(run.leaves)
        length = rows.stop - rows.start
        if not self._areas or length <= PART_BY_CELL * len(leaves):
            return self._among(leaves, rows, self._areas)
        return self._by_cell(run, rows)

    def _rows_by_time(self, leaves: Leaves) -> slice:
        """Return the slice of leaves that may lie in the times: these are ordered by the start of their time bins."""
        if self._times is None:
            return slice(0, len(leaves))
        if not len(self._times.limits):
            return slice(0, 0)
        first_us, end_us = int(self._times.limits[0, 0]), int(self._times.limits[-1, 1])
        longest_us = bin_us(self._settings, int(leaves.level.max())) if len(leaves) else 0
        start = int(np.searchsorted(leaves.start_us, first_us - longest_us, "right"))
        return slice(start, max(start, int(np.searchsorted(leaves.start_us, end_us, "left"))))

    def _by_cell(self, run: LeafRun, within: slice) -> list[ChosenPart]:
        """Choose by the cells' boxes first, and look only at leaves of the cells that the area cuts one by one."""
        index = run.by_cell
        touching, inside = self._relation(index.box)
        inner, border = np.flatnonzero(inside), np.flatnonzero(touching & ~inside)
        parts: list[ChosenPart] = []
        for cells, areas in ((inner, []), (border, self._areas)):
            rows = index.order[expand(index.at[cells], index.at[cells + 1] - index.at[cells])[1]]
            if within != slice(0, len(run)):
                rows = rows[(rows >= within.start) & (rows < within.stop)]
            parts += self._among(run.leaves, rows, areas)
        return parts

    def _relation(self, box: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        touching, inside = np.ones(box.shape[1], dtype=bool), np.ones(box.shape[1], dtype=bool)
        for area in self._areas:
            touches, lies = area.relation(box)
            touching &= touches
            inside &= lies
        return touching, inside

    def _among(self, leaves: Leaves, rows: Rows, areas: Sequence[PreparedArea]) -> list[ChosenPart]:
        """Return what is chosen among some rows: one part, or none."""
        conditions = [functools.partial(_by_area, area) for area in areas]
        if self._times is not None:
            conditions.append(functools.partial(_by_times, self._times))
        conditions += [functools.partial(_by_range, *one) for one in self._ranges]
        whole: Rows = rows
        partial, cut = _NONE, NO_CUT
        for condition in conditions:
            touching, inside = condition(leaves, whole, None)
            positions = np.arange(whole.start, whole.stop) if isinstance(whole, slice) else whole
            fresh = positions[touching & ~inside]
            kept = condition(leaves, partial, cut)
            share, least, most = np.ones((3, len(fresh)))
            added = condition(leaves, fresh, CutLeaves(share, least, most, np.zeros(len(fresh))))
            whole = positions[inside]
            partial = np.concatenate([partial[kept[0]], fresh[added[0]]])
            cut = CutLeaves.together([kept[1], added[1]])
        chosen = whole.stop - whole.start if isinstance(whole, slice) else len(whole)
        return [ChosenPart(leaves, whole, partial, cut)] if chosen or len(partial) else []


def _by_area(area: PreparedArea, leaves: Leaves, rows: Rows, cut: CutLeaves | None) -> Judged:
    """Apply an area: to whole leaves (no `cut`), which touch it and lie in it; or to leaves that are cut."""
    box = np.concatenate([leaves.place_low[:, rows], leaves.place_high[:, rows]])
    touching, inside = area.relation(box)
    if cut is None:
        return touching, inside
    share = np.where(inside, 1.0, 0.0)
    crossing = touching & ~inside
    share[crossing] = _inner(area.share(box[:, crossing]), leaves.count[rows][crossing])
    return touching, _and(cut, share, inside * 1.0, touching * 1.0).take(touching)


def _by_times(times: TimeIntervals, leaves: Leaves, rows: Rows, cut: CutLeaves | None) -> Judged:
    first_us, end_us = leaves.first_us[rows], leaves.last_us[rows] + 1
    covered = times.covered(end_us) - times.covered(first_us)
    touching, inside = covered > 0, covered == end_us - first_us
    if cut is None:
        return touching, inside
    share = np.where(inside, 1.0, _inner(covered / np.maximum(end_us - first_us, 1), leaves.count[rows]))
    return touching, _and(cut, share, inside * 1.0, touching * 1.0).take(touching)


def _inner(share: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return shares of leaves that are cut: there is an element at each side of a leaf's box, and at both its times."""
    least = 0.5 / np.maximum(count, 1)
    return np.minimum(np.maximum(share, least), 1 - least)


def _by_range(feature: int, range_: ValueRange, leaves: Leaves, rows: Rows, cut: CutLeaves | None) -> Judged:
    n, count = leaves.n[feature][rows], leaves.count[rows]
    low, high = leaves.low[feature][rows], leaves.high[feature][rows]
    touching = (n > 0) & (low <= range_.high) & (high >= range_.low)
    inside = touching & (low >= range_.low) & (high <= range_.high)
    if cut is None:
        return touching, inside & (n == count)
    assert not isinstance(rows, slice), "only single leaves are cut"
    present = n / np.maximum(count, 1)
    share, doubt = inside * present, np.zeros(len(count))
    least, most = share.copy(), share.copy()
    crossing = np.flatnonzero(touching & ~inside)
    columns = (getattr(leaves, name)[feature][rows[crossing]] for name in ("n", "mean", "m2", "low", "high"))
    known = summary_of(*columns)
    parts = range_parts(range_.low, range_.high, known)
    for column, part in zip((share, least, most, doubt), parts, strict=True):
        column[crossing] = part * present[crossing]
    return touching, _and(cut, share, least, most, doubt).take(touching)


def _and(
    cut: CutLeaves, share: np.ndarray, least: np.ndarray, most: np.ndarray, doubt: np.ndarray | float = 0.0
) -> CutLeaves:
    """Return what is known of leaves if one more condition, with these parts, holds."""
    least, most = np.maximum(cut.least + least - 1, 0), np.minimum(cut.most, most)
    return CutLeaves(cut.share * share, least, most, np.hypot(cut.share * doubt, cut.doubt * share))


def summary_of(n: np.ndarray, mean: np.ndarray, m2: np.ndarray, low: np.ndarray, high: np.ndarray) -> LeafSummary:
    """Return what leaves know of a feature, given columns of theirs."""
    return LeafSummary(n, mean, m2 / np.maximum(n, 1), low, high)


def chosen_together(parts: Sequence[ChosenLeaves]) -> ChosenLeaves:
    """Return what several sketches have chosen by the same selection; at least one."""
    first = parts[0]
    leaves = tuple(one for chosen in parts for one in chosen.parts)
    return ChosenLeaves(first.settings, first.selection, leaves, tuple(run for chosen in parts for run in chosen.runs))


def _joined(columns: Sequence[np.ndarray]) -> np.ndarray:
    if len(columns) == 1:
        return columns[0]
    return np.concatenate(columns) if columns else np.empty(0)

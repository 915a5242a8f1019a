"""Find the elements that entered or left moving ranges between two batches.

An element that was and is well inside a range, or well outside, has not crossed its border. So only elements near the
border are compared, and the cost of a range follows their number, not the number of its members.

References
----------
PLACE* (2007), section 4.2: participating servers send the positive and negative tuples of a range that has moved.
"""

import functools
from collections.abc import Callable
from time import perf_counter

import numpy as np

from streaming.operators.boxes import in_plane
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import CARRIED, CIRCLE, PlacedRanges
from streaming.operators.places import surely_within, within_boxes
from streaming.operators.runs import distinct
from streaming.operators.spatial_join import Pairs
from streaming.operators.stream_boxes import Look, StreamBoxes

# A box about the middle of a circle, with this part of its radius as half-width, lies within the circle while the earth
# is nearly flat.
WITHIN = 0.68
SURELY = 0.99
MOST_TURN_DEG = 80.0


class RangeBorders:
    """The borders of ranges that lasted from one batch to the next; the index over them is made once.

    Parameters
    ----------
    were, are : PlacedRanges
        The ranges before, and now.
    before, now : ndarray of int64, shape (K,)
        The positions of the same ranges in `were` and in `are`. A range without a place contains nothing.
    """

    def __init__(self, were: PlacedRanges, are: PlacedRanges, before: np.ndarray, now: np.ndarray) -> None:
        self.were, self.are, self.before, self.now = were, are, before, now

    @functools.cached_property
    def _strips(self) -> StreamBoxes:
        numbers, plane = _border_strips(self.were, self.are, self.before, self.now)
        ranges = self.are.ranges
        return StreamBoxes(numbers, plane, ranges.streams[self.now][numbers], ranges.space)

    @functools.cached_property
    def _before_of(self) -> np.ndarray:
        """The position in `are` of each range in `were`, 0 for the others."""
        positions = np.zeros(len(self.were.ranges), dtype=np.int64)
        positions[self.before] = self.now
        return positions

    def crossed_by(self, old: Elements, new: Elements, keys: np.ndarray, failures: Failures) -> tuple[Pairs, Pairs]:
        """Return the pairs of elements and ranges before and now, without some that hold at both times.

        A pair is left out if the element is far from the border of the range both times.

        Parameters
        ----------
        old, new : Elements, N of them each
            The same elements before, and now.
        keys : ndarray of int64, shape (N,)
            The `key_hash` of each element.
        failures : Failures
            Receives the errors of user-defined filters, and what ranges cost, by their positions in `are`.

        Returns
        -------
        Pairs, Pairs
            Those before, with positions in `were`, and those now, with positions in `are`.
        """
        began, n = perf_counter(), self.are.ranges.space.n
        swept = np.hstack([np.minimum(old.bounds, new.bounds)[:, :n], np.maximum(old.bounds, new.bounds)[:, n:]])
        row, number = self._strips.met_by(new.stream, swept)
        return self._exactly(row, number, (old, new), keys, failures, began)

    def crossing(
        self, look: Look, rested: Callable[[np.ndarray], np.ndarray], failures: Failures
    ) -> tuple[Pairs, Pairs, np.ndarray]:
        """Return the same for elements that rest, found by an index over them.

        Parameters
        ----------
        look : callable
            The index over the elements.
        rested : callable
            Given the `key_hash` of elements, tells which of them did not move.
        failures : Failures

        Returns
        -------
        Pairs, Pairs
            As from `crossed_by`.
        keys : ndarray of int64
            The `key_hash` of the elements whose positions the pairs have.
        """
        began = perf_counter()
        near = self._strips.meeting(look)
        rests = rested(near.keys)[near.row]
        both = near.elements, near.elements
        return *self._exactly(near.row[rests], near.box[rests], both, near.keys, failures, began), near.keys

    def _exactly(
        self,
        row: np.ndarray,
        number: np.ndarray,
        elements: tuple[Elements, Elements],
        keys: np.ndarray,
        failures: Failures,
        began: float,
    ) -> tuple[Pairs, Pairs]:
        row, number = np.divmod(distinct(row * len(self.now) + number), max(1, len(self.now)))
        failures.share(self.now[number], perf_counter() - began)
        past = Failures()
        pairs = self.were.exactly(row, self.before[number], elements[0], keys, past)
        failures.add(past, self._before_of)
        return pairs, self.are.exactly(row, self.now[number], elements[1], keys, failures)


def _border_strips(
    were: PlacedRanges, are: PlacedRanges, before: np.ndarray, now: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the border strips of ranges: their numbers and boxes of the plane (M, 4).

    An element can have entered or left a range only if the box around where it was and is meets one of the strips.
    """
    space = are.ranges.space
    outer_was, outer_is = in_plane(were.boxes[before], space), in_plane(are.boxes[now], space)
    outer = np.hstack([np.fmin(outer_was, outer_is)[:, :2], np.fmax(outer_was, outer_is)[:, 2:]])
    inner_was, inner_is = _inner(were, before, outer_was), _inner(are, now, outer_is)
    inner = np.hstack([np.maximum(inner_was, inner_is)[:, :2], np.minimum(inner_was, inner_is)[:, 2:]])
    number = np.flatnonzero(~np.isnan(outer).any(1))
    outer, inner = outer[number], inner[number]
    hollow = (inner[:, :2] < inner[:, 2:]).all(1)
    sides = [outer[~hollow]]
    for side in range(4):  # the strips to the left of the inner box, below it, to its right, above it
        part = outer[hollow]
        part[:, (side + 2) % 4] = inner[hollow, side]
        sides.append(part)
    numbers = [number[~hollow], *[number[hollow]] * 4]
    return np.concatenate(numbers), np.concatenate(sides)


def _inner(placed: PlacedRanges, chosen: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Return a box of the plane that lies within each range, (K, 4); NaN if none is known."""
    ranges, space = placed.ranges, placed.ranges.space
    inner = outer.copy()
    inner[ranges.kind[chosen] == CARRIED] = np.nan
    # A range that is bounded in a further dimension, such as altitude, may also be left in that dimension.
    inner[np.isfinite(placed.boxes[chosen][:, _beyond(space.n)]).any(1)] = np.nan
    circles = np.flatnonzero(ranges.kind[chosen] == CIRCLE)
    places = placed.places[chosen[circles]]
    radius = placed.radius[chosen[circles]]
    plane = within_boxes(places, WITHIN * radius, space)
    within = ~np.isinf(plane).any(1)
    if space.geographic:
        within &= (plane[:, 2] - plane[:, 0]) / 2 < MOST_TURN_DEG
    for corner in ([0, 1], [0, 3], [2, 1], [2, 3]):
        with np.errstate(invalid="ignore"):
            within &= surely_within(plane[:, corner], places, SURELY * radius, space)
    plane[~within] = np.nan
    inner[circles] = plane
    return inner


def _beyond(n: int) -> list[int]:
    """Return the columns of boxes for the dimensions after the second."""
    return [column for column in range(2 * n) if column % n > 1]

"""Find the elements that entered or left moving ranges between two batches.

An element that was and is well inside a range, or well outside, has not crossed its border. So only elements near the
border are compared, and the cost of a range follows their number, not the number of its members.

References
----------
PLACE* (2007), section 4.2: participating servers send the positive and negative tuples of a range that has moved.
"""

from time import perf_counter

import numpy as np

from streaming.operators.boxes import in_plane, with_turns
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import CARRIED, CIRCLE, PlacedRanges, candidates
from streaming.operators.places import surely_within, within_boxes
from streaming.operators.runs import distinct
from streaming.operators.spatial_join import Pairs

# A box about the middle of a circle, with this part of its radius as half-width, lies within the circle while the earth
# is nearly flat.
WITHIN = 0.68
SURELY = 0.99
MOST_TURN_DEG = 80.0


def crossed(
    were: PlacedRanges,
    are: PlacedRanges,
    ranges: tuple[np.ndarray, np.ndarray],
    elements: tuple[Elements, Elements],
    keys: np.ndarray,
    chosen: np.ndarray,
    failures: Failures,
) -> tuple[Pairs, Pairs]:
    """Return the pairs of elements and ranges before and now, without some that hold at both times.

    A pair is left out if the element is far from the border of the range both times.

    Parameters
    ----------
    were, are : PlacedRanges
        The ranges before, and now.
    ranges : tuple of ndarray of int64, shape (K,) each
        The positions of the same ranges in `were` and in `are`. A range without a place contains nothing.
    elements : tuple of Elements, N of them each
        The same elements before, and now.
    keys : ndarray of int64, shape (N,)
        The `key_hash` of each element.
    chosen : ndarray of bool, shape (N,)
        Which elements to look at.
    failures : Failures
        Receives the errors of user-defined filters, and what ranges cost, by their positions in `are`.

    Returns
    -------
    Pairs, Pairs
        Those before, with positions in `were`, and those now, with positions in `are`.
    """
    (before, now), began = ranges, perf_counter()
    space, (old, new) = are.ranges.space, (part.bounds for part in elements)
    swept = np.hstack([np.minimum(old, new)[:, : space.n], np.maximum(old, new)[:, space.n :]])
    numbers, plane = _rims(were, are, before, now)
    streams, found = are.ranges.streams[now], [np.empty((2, 0), dtype=np.int64)]
    for stream in distinct(streams).tolist():
        rows, mine = np.flatnonzero(elements[1].stream == stream), streams[numbers] == stream
        if len(rows):
            row, number = candidates(numbers[mine], plane[mine], swept[rows], space)
            found.append(np.stack([rows[row], number])[:, chosen[rows[row]]])
    row, number = np.hstack(found)
    row, number = np.divmod(distinct(row * len(now) + number), max(1, len(now)))
    failures.share(now[number], perf_counter() - began)
    past = Failures()
    pairs = were.exactly(row, before[number], elements[0], keys, past)
    present = np.zeros(len(were.ranges), dtype=np.int64)
    present[before] = now
    failures.add(past, present)
    return pairs, are.exactly(row, now[number], elements[1], keys, failures)


def _rims(were, are, before, now):
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
    return with_turns(np.concatenate(numbers), np.concatenate(sides), space)


def _inner(placed, chosen, outer):
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


def _beyond(n):
    """Return the columns of boxes for the dimensions after the second."""
    return [column for column in range(2 * n) if column % n > 1]

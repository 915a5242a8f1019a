"""What begins or ends between two batches to lie in ranges that move, without a look at all that stays in them.

Whatever lay and lies well within a range, or well outside, has not crossed its border. So a range costs what is near
its border, not what it holds.

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

# A box about the middle of a circle that is so much as large lies within it, as far as the earth is flat.
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
    """Return the pairs of elements and ranges that were, and those that are, without some that were and are.

    Parameters
    ----------
    were, are : PlacedRanges
        Where ranges were, and where they are.
    ranges : tuple of ndarray of int64, shape (K,) each
        The positions of the same ranges in both; those that are nowhere hold nothing.
    elements : tuple of Elements, N of them each
        As they were, and as they are.
    keys : ndarray of int64, shape (N,)
    chosen : ndarray of bool, shape (N,)
        Which elements are asked for.
    failures : Failures
        Is told of user-defined filters that fail, and of what ranges cost, by their positions as they are.
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
    """Return numbers of ranges and boxes of the plane (M, 4) outside of which nothing can cross them."""
    space = are.ranges.space
    outer_was, outer_is = in_plane(were.boxes[before], space), in_plane(are.boxes[now], space)
    outer = np.hstack([np.fmin(outer_was, outer_is)[:, :2], np.fmax(outer_was, outer_is)[:, 2:]])
    inner_was, inner_is = _inner(were, before, outer_was), _inner(are, now, outer_is)
    inner = np.hstack([np.maximum(inner_was, inner_is)[:, :2], np.minimum(inner_was, inner_is)[:, 2:]])
    number = np.flatnonzero(~np.isnan(outer).any(1))
    outer, inner = outer[number], inner[number]
    hollow = (inner[:, :2] < inner[:, 2:]).all(1)
    sides = [outer[~hollow]]
    for side in range(4):  # what is left of the inner box, below, to its right, above
        part = outer[hollow]
        part[:, (side + 2) % 4] = inner[hollow, side]
        sides.append(part)
    numbers = [number[~hollow], *[number[hollow]] * 4]
    return with_turns(np.concatenate(numbers), np.concatenate(sides), space)


def _inner(placed, chosen, outer):
    """Return boxes of the plane that lie within ranges, (K, 4); NaN where none is known."""
    ranges, space = placed.ranges, placed.ranges.space
    inner = outer.copy()
    inner[ranges.kind[chosen] == CARRIED] = np.nan
    # What is as high as the range may leave it upwards.
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
    """Return the columns of boxes in dimensions beyond the plane."""
    return [column for column in range(2 * n) if column % n > 1]

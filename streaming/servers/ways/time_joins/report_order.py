"""The order of the reports of a run, from south to north, and what tells a report from others."""

import numpy as np

from streaming.spaces import Space

# The order of reports has so many bits for the place, then as many of their name as there is room for.
_PLACE_BITS, _NAME_BITS = 30, 32
PLACE_STEP = 1 << _NAME_BITS
_MIX = np.uint64(0xD1B54A32D192ED03)


def report_names(key_hash: np.ndarray, time_us: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return what tells a report from others: hashes of its object, its time and its box, int64 of shape (N,).

    Two receivers may hear the same report. Reports of two places at the same time are two reports, and go to different
    regions.
    """
    mixed = key_hash.view(np.uint64)
    # Adding 0.0 makes -0.0 the same as 0.0.
    for column in (time_us, *(np.ascontiguousarray(bounds.T) + 0.0)):
        mixed = (mixed ^ column.view(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def ordered_by(space: Space) -> int:
    """Return the dimension by which reports are ordered: of the first two, one that does not wrap if there is one.

    On the earth it is the latitude. A distance reaches over many longitudes near a pole, but over few latitudes
    everywhere.
    """
    return next((number for number, axis in enumerate(space.dimensions[:2]) if not axis.wraps), 0)


def place_order(lowest: np.ndarray, space: Space) -> np.ndarray:
    """Return where reports begin in the order, by the lowest place of their boxes: int64 of the same shape.

    Examples
    --------
    >>> from streaming.spaces import EARTH
    >>> [int(key) // PLACE_STEP for key in place_order(np.array([-np.inf, -90.0, 0.0, 999.0]), EARTH)]
    [0, 0, 536870911, 1073741823]
    """
    axis, last = space.dimensions[ordered_by(space)], (1 << _PLACE_BITS) - 1
    share = (np.clip(lowest, axis.lo, axis.hi) - axis.lo) / axis.extent
    return (share * last).astype(np.int64) * PLACE_STEP


def report_order(name: np.ndarray, bounds: np.ndarray, space: Space) -> np.ndarray:
    """Return the keys by which reports are ordered, int64 of shape (N,): from south to north, and then by name.

    In other spaces than the earth, `ordered_by` says what takes the place of the latitude. The key of a report depends
    on the report alone. So it tells how far a window has been joined, whatever runs and regions the report has been in.
    """
    place = place_order(bounds[:, ordered_by(space)], space)
    return place | (name.view(np.uint64) >> np.uint64(64 - _NAME_BITS)).view(np.int64)

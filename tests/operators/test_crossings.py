"""What crosses the borders of ranges is what brute force finds in one batch and not in the other."""

import numpy as np
import pytest

from streaming.elements import stream_number
from streaming.operators.crossings import RangeBorders
from streaming.operators.element_grid import ElementGrid
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.focal_ranges import FocalRanges
from streaming.operators.stream_boxes import Near
from streaming.plans import parse_plan
from streaming.spaces import EARTH, parse_space

PLANE = parse_space(
    {"name": "plane", "dimensions": [{"name": name, "unit": "m", "lo": -10, "hi": 10} for name in ("x", "y")]}
)
SPACES = {space.name: space for space in (EARTH, PLANE)}
MIDDLES = {"earth": [(0, 0), (180, 0), (-179.99, 60), (20, 88), (20, 89.9)], "plane": [(0, 0), (8, -8)]}
# A step of the lattice on which everything lies, so that much lies on borders.
STEP = {"earth": 0.01, "plane": 0.25}
UNIT = {"earth": 1_112.0, "plane": 0.25}
SHAPES = (
    lambda u: {"radius": 3 * u},
    lambda u: {"radius": 40 * u},
    lambda u: {"half_widths": [4 * u, 2 * u]},
    lambda u: {"half_widths": [30 * u, None]},
    lambda u: {"polygon": [[-4 * u, -4 * u], [6 * u, 0], [0, 6 * u]]},
)


def elements(space, places, extent):
    """Elements of one stream whose low corners are places (N, 2), with extents (N, 2)."""
    bounds = np.full((len(places), 2 * space.n), np.inf)
    bounds[:, 2 : space.n] = -np.inf
    bounds[:, :2], bounds[:, space.n : space.n + 2] = places, places + extent
    return Elements(np.full(len(places), stream_number("ships")), bounds, None, False)


def inside(space, places):
    """Return places as a feed would name them: longitudes below 180, latitudes up to the pole."""
    for axis, dimension in enumerate(space.dimensions[:2]):
        if dimension.wraps:
            places[:, axis] = (places[:, axis] - dimension.lo) % dimension.extent + dimension.lo
        else:
            places[:, axis] = np.clip(places[:, axis], dimension.lo, dimension.hi)
    return places


def ranges_of(space, count, rng):
    """Ranges about focal objects 1 to count, and a function that places them."""
    shapes = [SHAPES[which](UNIT[space.name]) for which in rng.integers(0, len(SHAPES), count)]
    around = [{"stream": "ships", "key": str(number)} | shape for number, shape in enumerate(shapes)]
    ranges = FocalRanges([parse_plan({"stream": "ships", "around": entry}, space) for entry in around], space)

    def placed(places, known):
        order = np.argsort(ranges.focal)
        order = order[known[order]]
        middles = elements(space, places, 0.0).bounds
        return ranges.placed(ranges.focal[order], middles[order], np.full(count, np.nan))

    return placed


def codes(pairs):
    return set(zip(pairs.row.tolist(), pairs.query.tolist(), strict=True))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.seeds(240)
def test_what_begins_and_ends_is_that_of_brute_force(name, seed):
    space, rng = SPACES[name], np.random.default_rng(seed)
    middle, step = np.array(MIDDLES[name])[rng.integers(len(MIDDLES[name]))], STEP[name]
    count, spread = 80, rng.choice([6, 40])

    def lattice(n):
        return middle + rng.integers(-spread, spread + 1, (n, 2)) * step

    def moved(places):
        return places + rng.integers(-2, 3, places.shape) * step * rng.integers(0, 2, (len(places), 1))

    were_at, lay = lattice(12), lattice(count)
    extent = rng.integers(0, 3, (count, 2)) * step * rng.integers(0, 2)
    places, lie = inside(space, moved(were_at)), elements(space, inside(space, moved(lay)), extent)
    lay, placed = elements(space, inside(space, lay), extent), ranges_of(space, 12, rng)
    were, are = (placed(at, rng.random(12) < 0.9) for at in (inside(space, were_at), places))
    keys, positions = np.arange(count) + 1, np.arange(12)
    rested, borders = rng.random(count) < 0.8, RangeBorders(were, are, positions, positions)
    told = borders.crossed_by(lay, lie, keys, Failures())
    check(told, codes(were.match(lay, keys, Failures())), codes(are.match(lie, keys, Failures())))
    told = borders.crossing(looking(lie, keys, space), lambda keys: rested[keys - 1], Failures())[:2]
    full = ({pair for pair in codes(placed.match(lie, keys, Failures())) if rested[pair[0]]} for placed in (were, are))
    check(told, *full)


def looking(elements, keys, space):
    """Return an index over elements."""
    grid = ElementGrid(elements.bounds, space)
    return lambda plane: Near(*grid.meeting(plane), elements, keys)


def check(told, full_old, full_new):
    """What is told are members, and all of those that began or ended."""
    old, new = map(codes, told)
    assert old <= full_old and new <= full_new
    assert (old - new, new - old) == (full_old - full_new, full_new - full_old)


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("shape", [SHAPES[1], SHAPES[3]])
def test_what_stays_well_within_a_range_is_not_looked_at(name, shape):
    space, step = SPACES[name], STEP[name]
    around = {"stream": "ships", "key": "1"} | shape(UNIT[name])
    ranges = FocalRanges([parse_plan({"stream": "ships", "around": around}, space)], space)
    near = np.random.default_rng(5).uniform(-20, 20, (1000, 2)) * step
    crowd, keys, here = elements(space, near, 0.0), np.arange(1000) + 1, np.array([0])
    place = elements(space, np.array([[0, 0], [step, step]]), 0.0).bounds
    were, are = (ranges.placed(ranges.focal, place[[at]], np.full(1, np.nan)) for at in (0, 1))
    everything = lambda keys: np.ones(len(keys), dtype=bool)  # noqa: E731
    old, new, _ = RangeBorders(were, are, here, here).crossing(looking(crowd, keys, space), everything, Failures())
    assert len(are.match(crowd, keys, Failures()).row) > 900
    assert len(old.row) + len(new.row) < 300

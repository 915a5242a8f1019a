"""Elements and settings that tests draw: values on a coarse lattice, so that edges meet often; some are missing."""

from dataclasses import replace

import numpy as np

from streaming.sketch.bins import Bins
from streaming.sketch.observations import Observations
from streaming.sketch.settings import HOUR_US, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add, reduced

FEATURES = ("heat", "rain", "wind")
SETTINGS = SketchSettings(
    FEATURES,
    (Plane("heat", 5), Plane("wind", 3)),
    cell_bits=6,
    comoments=("heat", "rain"),
    first=40,
    follow=70,
)
KNOWN_BINS = Bins((np.array([-1.0, 0.0, 1.0]), np.array([2.0])), (1, 0))


def observations(rng, count):
    """Return elements of some days: values with ties, gaps and infinities, some without a place."""
    time_us = (rng.integers(0, 24 * 20, count) * HOUR_US // 6 + rng.integers(0, 3, count)).astype(np.int64)
    place = np.round(rng.uniform(-1, 1, (2, count)) * [[180], [90]])
    values = np.round(rng.normal(0, 1, (3, count)) * rng.choice([1, 100, 1e6], (3, 1)), 1)
    values[1] = np.where(rng.random(count) < 0.7, 0.0, np.abs(values[1]))
    values[rng.random((3, count)) < rng.choice([0.0, 0.1])] = np.nan
    if rng.random() < 0.2:
        place[:, rng.integers(count)] = np.inf
        values[0, rng.integers(count)] = np.inf
    return Observations(time_us, place, values)


def some_settings(rng):
    """Return settings of all kinds, with a memory budget that is far away."""
    planes = [replace(plane, error=[None, 0.02, 0.2][rng.integers(3)]) for plane in SETTINGS.planes]
    return replace(
        SETTINGS,
        planes=tuple(planes[: rng.integers(0, 3)]),
        comoments=[(), FEATURES, FEATURES[:2]][rng.integers(3)],
        study_us=[None, HOUR_US, 5 * HOUR_US + 1][rng.integers(3)],
        cell_bits=int(rng.choice([0, 1, 6, 13])),
    )


def grown(sketch, elements, cuts=()):
    """Return a sketch with more elements, which come in batches that end at `cuts`; those of the last one wait."""
    for part in np.split(np.arange(len(elements)), sorted(cuts)):
        sketch = add(reduced(sketch), elements.take(part))
    return sketch


def known(settings):
    """Return an empty sketch whose bins do not depend on what comes."""
    planes = len(settings.planes)
    return Sketch.empty(replace(settings, follow=0), bins=Bins(KNOWN_BINS.edges[:planes], tuple(range(planes))))


def same(one, other):
    """Assert that two sketches have the same leaves: keys, counts and extremes exactly, moments but for rounding."""
    one, other = one.leaves(), other.leaves()
    exact = ("start_us", "level", "cell", "planes", "count", "first_us", "last_us", "place_low", "place_high", "n")
    for name in (*exact, "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("mean", "m2", "comoment"):
        size = max(np.abs(getattr(one, name)).max(initial=0), 1e-300)
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9 * size, err_msg=name)


def matching(elements, boxes=(), times=None, ranges=()):
    """Tell which elements a selection chooses, by brute force: bool of shape (N,)."""
    x, y = elements.place
    mask = np.isfinite(elements.place).all(axis=0)
    for west, south, east, north in boxes:
        mask &= (x >= west) & (x <= east) & (y >= south) & (y <= north)
    if times is not None:
        mask &= np.any([(elements.time_us >= start) & (elements.time_us < end) for start, end in times], axis=0)
    for feature, low, high in ranges:
        column = elements.values[FEATURES.index(feature)]
        mask &= np.isfinite(column) & (column >= low) & (column <= high)
    return mask

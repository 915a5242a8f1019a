"""A sketch does not depend on batches, on the order of elements, or on how it was split and merged."""

from dataclasses import replace

import numpy as np
import pytest

from streaming.sketch import codec
from streaming.sketch import sketch as sketch_module
from streaming.sketch.bins import Bins, equal_bins, equal_bins_of_intervals, fan_out_order, vertices
from streaming.sketch.levels import LeafLevels
from streaming.sketch.moments import moments
from streaming.sketch.observations import Observations
from streaming.sketch.runs import ElementRun, LeafRun
from streaming.sketch.settings import DAY_US, HOUR_US, InvalidSketch, Plane, SketchSettings
from streaming.sketch.sketch import Sketch, add, merge, reduced, split
from streaming.spaces import EARTH
from streaming.state.codec import Tables
from tests.sketch.scenes import FEATURES, SETTINGS, grown, known, observations, same, some_settings


def scene(seed, most=200):
    rng = np.random.default_rng(seed)
    return rng, some_settings(rng), observations(rng, int(rng.integers(1, most)))


@pytest.mark.seeds(400)
def test_any_cut_into_batches_makes_the_same_sketch_with_bins_that_follow_the_stream(seed):
    rng, settings, elements = scene(seed, 300)
    cuts = rng.integers(0, len(elements), 4).tolist()
    whole, cut = grown(Sketch.empty(settings), elements), grown(Sketch.empty(settings), elements, cuts)
    same(whole, cut)
    assert (whole.count, whole.unplaced, whole.since, whole.newest_us) == (
        cut.count,
        cut.unplaced,
        cut.since,
        cut.newest_us,
    )
    if whole.bins is not None:
        assert whole.bins.tag == cut.bins.tag


@pytest.mark.seeds(400)
def test_it_does_not_matter_how_many_elements_wait_before_they_become_leaves(seed):
    rng, settings, elements = scene(seed, 300)
    cuts = rng.integers(0, len(elements), 9).tolist()
    plain = grown(Sketch.empty(settings), elements)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sketch_module, "MOST_WAITING", int(rng.integers(1, 60)))
        whole, cut = grown(Sketch.empty(settings), elements), grown(Sketch.empty(settings), elements, cuts)
        assert cut.bins is None or sum(map(len, cut.waiting)) < sketch_module.MOST_WAITING
        ready = reduced(cut)
        assert ready.bins is None or not ready.waiting
        for one in (cut, ready, reduced(ready)):
            same(one, whole)
            assert one.count == whole.count == plain.count
    if whole.bins is None or whole.bins.tag == plain.bins.tag:
        same(whole, plain)


@pytest.mark.seeds(400)
def test_any_order_of_elements_and_of_merges_makes_the_same_leaves(seed):
    rng, settings, elements = scene(seed)
    part = rng.integers(0, 3, len(elements))
    a, b, c = (grown(known(settings), elements.take(rng.permutation(np.flatnonzero(part == one)))) for one in range(3))
    whole = grown(known(settings), elements)
    same(merge(merge(a, b), c), whole)
    same(merge(a, merge(c, b)), whole)
    assert merge(merge(a, b), c).count == whole.count


@pytest.mark.seeds(400)
def test_what_is_split_by_place_loses_nothing_and_is_the_whole_when_merged(seed):
    rng, settings, elements = scene(seed)
    start = known(settings) if rng.random() < 0.5 else Sketch.empty(settings)
    sketch = grown(start, elements, rng.integers(0, len(elements), 3).tolist())
    parts = split(sketch, lambda place: (place[0] > 0) * 1 + (place[1] > 10) * 2, 4)
    assert sum(part.count for part in parts) == sketch.count
    assert sum(part.unplaced for part in parts) == sketch.unplaced
    merged = parts[0]
    for part in parts[1:]:
        merged = merge(merged, part)
    same(merged, sketch)
    assert merged.count == sketch.count


@pytest.mark.seeds(400)
def test_leaves_are_those_of_brute_force(seed):
    _, settings, elements = scene(seed)
    settings = replace(settings, study_us=None)
    leaves = grown(known(settings), elements).leaves()
    placed = elements.take(np.isfinite(elements.place).all(axis=0))
    values = np.where(np.isfinite(placed.values), placed.values, np.nan)
    assert leaves.count.sum() == len(placed)
    column, row = (np.floor((c + h) / (2 * h) * 2**24) for c, h in zip(placed.place, (180, 90), strict=True))
    bits = [(column, (settings.cell_bits + 1) // 2), (row, settings.cell_bits // 2)]
    cell = [np.minimum(part, 2**24 - 1) // 2 ** (24 - count) for part, count in bits]
    told = [placed.time_us // HOUR_US, *cell]
    for plane in settings.planes:
        edges = {"heat": [-1.0, 0.0, 1.0], "wind": [2.0]}[plane.feature]
        column = values[FEATURES.index(plane.feature)]
        told.append(np.where(np.isnan(column), -1, np.searchsorted(edges, column, "right")))
    chosen = [FEATURES.index(name) for name in settings.comoments]
    told.append(~np.isnan(values[chosen]).any(axis=0))
    _, group = np.unique(np.stack(told), axis=1, return_inverse=True)
    assert len(leaves) == group.max(initial=-1) + 1
    exact = {tuple(sorted(placed.time_us[group == one])) for one in range(len(leaves))}
    assert {(times[0], times[-1], len(times)) for times in exact} == set(
        zip(leaves.first_us, leaves.last_us, leaves.count, strict=True)
    )
    for feature, column in enumerate(values):
        moments_ = sorted(_moments(column[group == one]) for one in range(len(leaves)))
        names = ("n", "low", "high", "mean", "m2")
        found = sorted(zip(*(getattr(leaves, name)[feature] for name in names), strict=True))
        size = np.nanmax(np.abs(column), initial=1.0)
        np.testing.assert_allclose(found, moments_, rtol=1e-9, atol=1e-9 * size**2)


def _moments(column):
    column = column[~np.isnan(column)]
    if not len(column):
        return (0, np.inf, -np.inf, 0.0, 0.0)
    return (len(column), column.min(), column.max(), column.mean(), ((column - column.mean()) ** 2).sum())


@pytest.mark.seeds(400)
def test_moments_of_everything_are_those_of_all_complete_elements(seed):
    rng, settings, elements = scene(seed)
    settings = replace(settings, comoments=FEATURES)
    sketch = grown(Sketch.empty(settings), elements, rng.integers(0, len(elements), 2).tolist())
    complete = elements.values[:, np.isfinite(elements.values).all(axis=0) & np.isfinite(elements.place).all(axis=0)]
    found = moments(sketch)
    assert found.n == complete.shape[1] and found.cut == 0
    if found.n > 1:
        expected = np.cov(complete) * (found.n - 1)
        np.testing.assert_allclose(found.mean, complete.mean(axis=1), rtol=1e-9, atol=1e-9 * np.abs(complete).max())
        np.testing.assert_allclose(found.comoment, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max() + 1e-12)


@pytest.mark.seeds(400)
def test_a_stored_sketch_goes_on_as_if_it_had_not_been_stored(seed):
    rng, settings, elements = scene(seed)
    at = int(rng.integers(0, len(elements)))
    sketch = grown(Sketch.empty(settings), elements.take(slice(0, at)))
    parts = codec.encode(sketch)
    written = {name: Tables(part.tables()) for name, part in parts.items()}
    for read in (codec.decode(written, EARTH), codec.decode(parts, EARTH)):
        assert read.settings == settings
        same(add(read, elements.take(slice(at, None))), grown(sketch, elements.take(slice(at, None))))
    read = codec.decode(parts, EARTH)
    shared = zip((*read.waiting, *read.runs), (*sketch.waiting, *sketch.runs), strict=True)
    assert all(one is other for one, other in shared)


def test_a_part_of_a_name_never_gets_another_content():
    rng, seen, sketch = (
        np.random.default_rng(5),
        {},
        Sketch.empty(replace(SETTINGS, study_us=2 * HOUR_US, most_leaves=60)),
    )
    for _ in range(60):
        sketch = add(sketch, observations(rng, 30))
        for name, part in codec.encode(sketch).items():
            if isinstance(part, ElementRun | LeafRun):
                assert seen.setdefault(name, part) is part
    assert len(seen) > 60


def test_old_times_are_kept_more_coarsely_until_one_record_a_time_bin_is_left():
    settings = SketchSettings(("x",), (Plane("x", 8),), cell_bits=4, time_bin_us=HOUR_US, study_us=6 * HOUR_US, first=1)
    rng, sketch = np.random.default_rng(2), Sketch.empty(replace(settings, first=500, follow=0))
    for hour in range(400):
        time_us = np.full(500, hour * HOUR_US)
        place = rng.uniform(-1, 1, (2, 500)) * [[180], [90]]
        sketch = add(sketch, Observations(time_us, place, rng.normal(size=(1, 500))))
    leaves = sketch.leaves()
    age = (sketch.newest_us - leaves.start_us) // HOUR_US
    assert leaves.level[age < 6].max() == 0 and leaves.level[age > 13].min() >= 1
    records = [int((leaves.start_us == start).sum()) for start in np.unique(leaves.start_us)]
    assert records[0] == 1 and records[-1] > 100
    assert leaves.count.sum() == 400 * 500


def test_memory_stays_flat_over_a_simulated_year():
    settings = SketchSettings(("x", "y"), (Plane("x", 8),), cell_bits=6, time_bin_us=6 * HOUR_US, study_us=7 * DAY_US)
    rng, sketch, taken = np.random.default_rng(2), Sketch.empty(settings), []
    for step in range(4 * 365):
        place = rng.uniform(-1, 1, (2, 200)) * [[180], [90]]
        sketch = add(sketch, Observations(np.full(200, step * 6 * HOUR_US), place, rng.normal(size=(2, 200))))
        taken.append(sketch.nbytes)
    quarters = [np.max(part) for part in np.array_split(taken[4 * 30 :], 4)]
    assert max(quarters) < 1.1 * quarters[0]
    assert sketch.count == 4 * 365 * 200 == sketch.leaves().count.sum()


def test_in_the_equal_mode_everything_becomes_coarser_as_elements_come():
    rng, sketch = np.random.default_rng(1), Sketch.empty(replace(SETTINGS, most_leaves=100))
    coarseness = []
    for _ in range(50):
        sketch = add(sketch, observations(rng, 50))
        coarseness.append(sketch.coarseness)
        assert sum(map(len, sketch.runs)) <= 125
    assert coarseness == sorted(coarseness) and coarseness[-1] > 0
    assert set(sketch.leaves().level) == {coarseness[-1]}


@pytest.mark.seeds(400)
def test_a_time_bin_has_one_level_and_levels_only_rise(seed):
    _, settings, elements = scene(seed)
    settings = replace(settings, study_us=2 * HOUR_US)
    time_us, newest = elements.time_us, int(elements.time_us.max())
    before = LeafLevels(settings, newest, 0).of(time_us)
    for later, coarseness in ((newest + HOUR_US * 7, 0), (newest, 1), (newest + 3 * HOUR_US, 2)):
        assert (LeafLevels(settings, later, coarseness).of(time_us) >= before).all()
    leaves = grown(known(settings), elements).leaves()
    starts, first = np.unique(leaves.start_us, return_index=True)
    assert (leaves.level == leaves.level[first][np.searchsorted(starts, leaves.start_us)]).all()


def test_bins_have_about_equally_many_elements_and_follow_a_stream_that_drifts():
    rng, settings = (
        np.random.default_rng(3),
        SketchSettings(("x",), (Plane("x", 10),), cell_bits=0, first=5000, follow=5000),
    )
    sketch = Sketch.empty(settings)
    for shift in (0.0, 100.0, 100.0, 100.0):
        place = np.zeros((2, 5000))
        sketch = add(sketch, Observations(np.arange(5000), place, rng.gamma(1.0, 2.0, (1, 5000)) + shift))
    shares = np.histogram(rng.gamma(1.0, 2.0, 20_000) + 100, [-np.inf, *sketch.bins.edges[0], np.inf])[0] / 20_000
    assert len(shares) == 10 and shares.max() < 0.2 and shares.min() > 0.03


def test_a_common_value_fills_one_bin():
    values = np.concatenate([np.zeros(90), np.arange(1, 11)])
    edges = equal_bins(values, 10)
    assert len(edges) == 1 and edges[0] > 0
    assert len(equal_bins(np.arange(100.0), 10)) == 9


def test_no_bin_is_very_wide_where_values_are_rare():
    edges = equal_bins(np.append(np.random.default_rng(0).normal(size=10_000), [40.0, 80.0, 100.0]), 64)
    assert np.diff(edges).max() <= 45 and len(edges) > 50


def test_bins_of_intervals_do_not_depend_on_the_order_of_leaves():
    rng = np.random.default_rng(0)
    low = np.round(rng.normal(size=50), 1)
    high, n, order = low + np.round(rng.random(50), 1), rng.integers(1, 20, 50), rng.permutation(50)
    one = equal_bins_of_intervals(low, high, n, 7)
    assert one.tolist() == equal_bins_of_intervals(low[order], high[order], n[order], 7).tolist()


@pytest.mark.seeds(400)
def test_the_order_of_planes_makes_no_more_vertices_than_the_opposite_order(seed):
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(1, most, 100) for most in rng.integers(2, 40, 3)])
    order = fan_out_order(codes)
    assert vertices(codes, order) <= vertices(codes, order[::-1])


def test_a_missing_value_has_a_bin_of_its_own():
    assert Bins((np.array([0.0]),), (0,)).codes([np.array([np.nan, -1.0, 0.0])]).tolist() == [[0, 1, 2]]


def test_sketches_of_different_settings_are_not_merged():
    with pytest.raises(InvalidSketch, match="equal settings"):
        merge(Sketch.empty(SETTINGS), Sketch.empty(replace(SETTINGS, cell_bits=7)))

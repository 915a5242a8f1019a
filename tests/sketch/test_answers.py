"""Every answer of a sketch has the exact one within its bounds."""

import functools
from dataclasses import fields, replace

import numpy as np
import pytest
import shapely

from streaming.sketch import density, groups, statistics
from streaming.sketch.answers import contrast, deviations
from streaming.sketch.chosen import choose, chosen_together
from streaming.sketch.levels import bits_of
from streaming.sketch.moments import moments_of
from streaming.sketch.observations import Observations
from streaming.sketch.partials import by_cell, chosen_of, condensed, partial_tables
from streaming.sketch.relations import relate
from streaming.sketch.selection import EVERYTHING, Selection, TimeIntervals, ValueRange
from streaming.sketch.settings import HOUR_US, InvalidSketch
from streaming.sketch.sketch import Sketch, reduced, split
from tests.sketch.scenes import FEATURES, SETTINGS, grown, known, matching, observations, some_settings

PARTS = (0.1, 0.5, 0.9)


def scene(seed):
    """A sketch, its elements, a selection, and which elements that chooses."""
    rng = np.random.default_rng(seed)
    settings = replace(some_settings(rng), comoments=FEATURES[:2])
    elements = observations(rng, int(rng.integers(1, 300)))
    start = known(settings) if rng.random() < 0.5 else Sketch.empty(settings)
    sketch = grown(start, elements, rng.integers(0, len(elements), 2).tolist())
    chosen = {}
    if rng.random() < 0.7:
        corner = np.round(rng.uniform(-1, 1, (2, 2)) * [180, 90])
        chosen["boxes"] = [tuple(np.concatenate([corner.min(0), corner.max(0)]).tolist())]
    if rng.random() < 0.5:
        hours = np.unique(rng.integers(0, 80, 6)) * HOUR_US
        chosen["times"] = list(zip(hours[:-1:2].tolist(), hours[1::2].tolist(), strict=False))
    if rng.random() < 0.5:
        feature = FEATURES[rng.integers(3)]
        low, high = sorted(rng.choice(np.append(elements.values[FEATURES.index(feature)], [0.0, 1.0]), 2))
        if not (np.isnan(low) or np.isnan(high)):
            chosen["ranges"] = [(feature, low, high)]
    selection = Selection(
        tuple(chosen.get("boxes", ())),
        TimeIntervals.of(chosen["times"]) if "times" in chosen else None,
        tuple(ValueRange(*one) for one in chosen.get("ranges", ())),
    )
    return rng, sketch, elements, selection, matching(elements, **chosen)


def exact(elements, mask, feature):
    """The values of a feature of elements that match."""
    column = elements.values[FEATURES.index(feature), mask]
    return column[np.isfinite(column)]


def questions(feature, limits):
    """Each question about a feature, and its exact answer from values."""
    low, high = limits
    return {
        "count": (functools.partial(statistics.count, feature=feature), len),
        "mean": (functools.partial(statistics.mean, feature=feature), np.mean),
        "std": (functools.partial(statistics.std, feature=feature), lambda x: x.std(ddof=1)),
        "least": (functools.partial(statistics.minimum, feature=feature), np.min),
        "most": (functools.partial(statistics.maximum, feature=feature), np.max),
        "integral": (
            functools.partial(density.integral, feature=feature, low=low, high=high),
            lambda x: ((x >= low) & (x <= high)).mean(),
        ),
        "probability": (
            functools.partial(density.probability, feature=feature, value=low, width=1.0),
            lambda x: ((x >= low - 0.5) & (x <= low + 0.5)).mean(),
        ),
        "outliers": (
            functools.partial(density.outliers, feature=feature, deviations_=1.5),
            lambda x: (np.abs(x - x.mean()) > 1.5 * x.std(ddof=1)).mean(),
        ),
    }


@pytest.mark.seeds(240)
def test_certain_bounds_hold_for_every_question(seed):
    rng, sketch, elements, selection, mask = scene(seed)
    feature = FEATURES[rng.integers(3)]
    values, chosen = exact(elements, mask, feature), choose(sketch, selection)
    if len(values) < 2 or np.ptp(values) == 0:
        return
    limits = sorted(rng.choice(values, 2) + rng.choice([0.0, 0.05], 2))
    for name, (ask, truth) in questions(feature, limits).items():
        answer, expected = ask(chosen, confidence=1.0), truth(values)
        room = 1e-9 * max(abs(expected), 1)
        assert answer.low - room <= expected <= answer.high + room, (name, answer, expected)
        few = answer.basis.elements < (2 if name in ("std", "outliers") else 1)  # then it may be that there is no value
        assert answer.low <= answer.value <= answer.high or (few and np.isnan(answer.value)), name
        assert answer.confidence == 1
    found = density.quantiles(chosen, feature, PARTS, 1.0)
    for answer, expected in zip(found, np.quantile(values, PARTS, method="inverted_cdf"), strict=True):
        assert answer.low <= expected <= answer.high


@pytest.mark.seeds(400)
def test_less_confidence_never_widens_bounds(seed):
    rng, sketch, elements, selection, mask = scene(seed)
    feature = FEATURES[rng.integers(3)]
    chosen = choose(sketch, selection)
    if len(exact(elements, mask, feature)) < 2:
        return
    for name, (ask, _) in questions(feature, (-0.5, 0.5)).items():
        answers = [ask(chosen, confidence=confidence) for confidence in (0.5, 0.9, 0.99)]
        widths = [answer.width for answer in answers]
        assert widths == sorted(widths), name


@pytest.mark.seeds(400)
def test_what_cuts_no_leaf_is_answered_exactly(seed):
    rng, sketch, elements, _, _ = scene(seed)
    sketch = grown(known(replace(sketch.settings, study_us=None)), elements)
    hours = np.unique(rng.integers(0, 80, 2)) * HOUR_US
    times = TimeIntervals.between(int(hours[0]), int(hours[-1]) + HOUR_US)
    chosen = choose(sketch, Selection(times=times))
    mask = matching(elements, times=times.limits.tolist())
    assert statistics.count(chosen).value == mask.sum() == statistics.count(chosen).low
    for feature in FEATURES:
        values = exact(elements, mask, feature)
        if len(values) < 2:
            continue
        asked = questions(feature, (0.0, 1.0))
        for name in ("count", "mean", "std", "least", "most"):
            answer, expected = asked[name][0](chosen), asked[name][1](values)
            size = max(np.abs(values).max(), 1e-9)
            assert answer.width <= 1e-8 * size and abs(answer.value - expected) <= 1e-7 * size, name
    both = np.isfinite(elements.values[:2, mask]).all(axis=0)
    pair = elements.values[:2, mask][:, both]
    if both.sum() > 2 and (np.ptp(pair, axis=1) > 0).all():
        found = statistics.correlation(chosen, *FEATURES[:2])
        assert abs(found.value - np.corrcoef(pair)[0, 1]) < 1e-6 and found.width < 1e-6


@pytest.mark.seeds(240)
def test_regions_answer_together_as_the_whole_does(seed):
    rng, sketch, _, selection, _ = scene(seed)
    feature, sketch = FEATURES[rng.integers(3)], reduced(sketch)
    parts = split(sketch, lambda place: (place[0] > 0) * 1 + (place[1] > 10) * 2, 4)
    whole = choose(sketch, selection, merge=False)
    regions = [choose(part, selection, merge=False) for part in parts]
    small = [partial_tables(condensed(one)) for one in regions]
    together = (chosen_together(regions), chosen_of(small, sketch.settings, selection))
    for name, (ask, _) in questions(feature, (-0.5, 0.5)).items():
        expected = ask(whole)
        if name in ("integral", "probability", "outliers") or np.isnan(expected.value):
            continue
        for chosen in together:
            answer = ask(chosen)
            for part in ("value", "low", "high"):
                assert np.isclose(getattr(answer, part), getattr(expected, part), rtol=1e-6, atol=1e-6), name
            assert np.isclose(answer.basis.elements, expected.basis.elements)


@pytest.mark.seeds(400)
def test_small_partials_answer_densities_within_certain_bounds(seed):
    rng, sketch, elements, selection, mask = scene(seed)
    feature = FEATURES[rng.integers(3)]
    values = exact(elements, mask, feature)
    if not len(values):
        return
    parts = split(sketch, lambda place: (place[0] > 0) * 1, 2)
    small = [partial_tables(condensed(choose(part, selection), feature)) for part in parts]
    chosen = chosen_of(small, sketch.settings, selection)
    low, high = sorted(rng.choice(values, 2))
    answer = density.integral(chosen, feature, low, high, 1.0)
    assert answer.low <= ((values >= low) & (values <= high)).mean() <= answer.high


@pytest.mark.seeds(240)
def test_a_part_of_a_sketch_is_asked_again(seed):
    _, sketch, _, selection, _ = scene(seed)
    more = Selection(((-90.0, -45.0, 60.0, 45.0),), TimeIntervals.between(10 * HOUR_US, 60 * HOUR_US))
    twice, at_once = relate(sketch, selection).choose(more), choose(sketch, selection & more)
    for feature in FEATURES:
        expected, found = statistics.mean(at_once, feature), statistics.mean(twice, feature)
        np.testing.assert_allclose(
            (found.value, found.low, found.high), (expected.value, expected.low, expected.high), rtol=1e-7, atol=1e-7
        )
    assert relate(sketch, selection).relate(more).chosen.leaves == at_once.leaves or not selection.areas


@pytest.mark.seeds(400)
def test_moments_of_a_selection_are_those_of_whole_leaves_and_parts_of_cut_ones(seed):
    _, sketch, _, selection, _ = scene(seed)
    chosen = choose(sketch, selection)
    found, answer = moments_of(chosen), statistics.correlation(chosen, *FEATURES[:2])
    assert (np.linalg.eigvalsh(found.comoment) > -1e-6 * np.abs(found.comoment).max(initial=1)).all()
    if not np.isnan(answer.value):
        spread = np.sqrt(np.diag(found.comoment))
        assert np.isclose(found.comoment[0, 1] / (spread[0] * spread[1]), answer.value, atol=1e-6)


def test_a_contrast_is_the_difference_of_two_answers_with_the_errors_of_both():
    rng = np.random.default_rng(4)
    elements = observations(rng, 400)
    sketch = grown(known(SETTINGS), elements)
    west, east = ((-170.0, -80.0, -11.0, 80.0), (13.0, -80.0, 170.0, 80.0))
    for confidence in (0.9, 1.0):
        answers = [statistics.mean(choose(sketch, Selection((box,))), "heat", confidence) for box in (west, east)]
        found = contrast(*answers)
        means = [exact(elements, matching(elements, boxes=[box]), "heat").mean() for box in (west, east)]
        assert found.low <= means[0] - means[1] <= found.high
        assert found.value == answers[0].value - answers[1].value
        assert found.width <= answers[0].width + answers[1].width + 1e-9
        assert found.basis.elements == sum(answer.basis.elements for answer in answers)


def test_a_polygon_chooses_what_lies_in_it_and_bounds_hold_along_its_border():
    rng = np.random.default_rng(8)
    place = rng.uniform(-1, 1, (2, 20_000)) * [[180], [90]]
    values = np.stack([place[0] + rng.normal(size=20_000), place[1], np.ones(20_000)])
    elements = Observations(rng.integers(0, HOUR_US, 20_000), place, values)
    sketch = grown(known(replace(SETTINGS, cell_bits=10, planes=())), elements)
    area = shapely.Polygon([(-100, -50), (120, -20), (30, 70), (-60, 40)])
    mask = shapely.contains_xy(area, *place)
    chosen = choose(sketch, Selection((area,)))
    assert 0 < len(chosen.cut.share) < chosen.leaves
    for confidence in (0.95, 1.0):
        count, mean = statistics.count(chosen, None, confidence), statistics.mean(chosen, "heat", confidence)
        assert count.low <= mask.sum() <= count.high and mean.low <= values[0, mask].mean() <= mean.high
    assert abs(count.value - mask.sum()) < 0.02 * mask.sum()


def test_an_area_that_crosses_the_antimeridian_chooses_both_sides():
    place = np.array([[179.0, -179.0, 0.0, 170.5], [0.0, 0.0, 0.0, 0.0]])
    elements = Observations(np.zeros(4, dtype=np.int64), place, np.arange(12.0).reshape(3, 4))
    sketch = grown(known(replace(SETTINGS, planes=(), cell_bits=20)), elements)
    for area in ((175.0, -5.0, 185.0, 5.0), shapely.box(175, -5, 185, 5), shapely.box(-185, -5, -175, 5)):
        answer = statistics.count(choose(sketch, Selection((area,))), None, 1.0)
        assert (answer.low, answer.high) == (2, 2)


def test_what_an_answer_is_based_on_is_told():
    elements = observations(np.random.default_rng(3), 200)
    sketch = grown(known(SETTINGS), elements)
    basis = statistics.mean(choose(sketch), "heat").basis
    assert basis.elements == sketch.count and basis.cut == 0
    assert (basis.first_us, basis.last_us) == (elements.time_us.min(), elements.time_us.max())


def test_nothing_is_answered_where_nothing_is():
    sketch = Sketch.empty(SETTINGS)
    for ask, _ in questions("heat", (0.0, 1.0)).values():
        answer = ask(choose(sketch))
        assert np.isnan(answer.value) or answer.value == 0
    assert choose(sketch, EVERYTHING).leaves == 0


@pytest.mark.parametrize("confidence", [0, -1, 1.1, float("nan")])
def test_a_confidence_that_is_none_is_refused(confidence):
    with pytest.raises(InvalidSketch, match="confidence"):
        deviations(confidence)


BOW_TIE = shapely.Polygon([(0, 0), (1, 1), (0, 1), (1, 0)])


@pytest.mark.parametrize("area", [(1, 2, 0, 3), (1, 2, 3), (float("nan"), 0, 1, 1), shapely.Point(), BOW_TIE])
def test_an_area_that_is_none_is_refused(area):
    with pytest.raises(InvalidSketch):
        choose(grown(known(SETTINGS), observations(np.random.default_rng(0), 50)), Selection((area,)))


@pytest.mark.seeds(400)
def test_leaves_merged_by_cell_answer_for_each_cell_as_all_of_them_do(seed):
    rng, sketch, _, selection, _ = scene(seed)
    feature, level = FEATURES[rng.integers(3)], int(rng.integers(15))
    for one in (selection, EVERYTHING):
        whole, (few, _) = choose(sketch, one, merge=False), by_cell(sketch, one, level)
        (cells, bits, of), (few_cells, few_bits, few_of) = groups.by_cell(whole, level), groups.by_cell(few, level)
        assert (few_cells.tolist(), few_bits) == (cells.tolist(), bits)
        leaves, merged = whole.taken()[0], few.taken()[0]
        shift = np.maximum(bits_of(sketch.settings, leaves.level.astype(np.int64)) - level, 0)
        assert len(merged) == len(set(zip(leaves.level, leaves.cell >> shift, leaves.complete, strict=True)))
        for expected, found in (
            (groups.counted(whole, of), groups.counted(few, few_of)),
            (groups.described(whole, of, feature, 0.9), groups.described(few, few_of, feature, 0.9)),
        ):
            for field in fields(groups.GroupStatistics):
                pair = (getattr(told, field.name) for told in (found, expected))
                np.testing.assert_allclose(*pair, rtol=1e-6, atol=1e-6, err_msg=field.name)

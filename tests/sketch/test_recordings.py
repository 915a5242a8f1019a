"""On recordings, probable bounds hold as often as they say, bins reach the paper's trade, and memory stays small."""

import numpy as np
import pytest

pytestmark = pytest.mark.recordings


@pytest.fixture(scope="module")
def recordings(shared_data):
    pytest.importorskip("scipy")
    from bench.sketch import recordings

    return {name: read(shared_data) for name, read in recordings.RECORDINGS.items()}


@pytest.mark.long
@pytest.mark.parametrize("name", ["beijing", "globe", "ships"])
def test_bounds_of_95_percent_hold_at_least_as_often(recordings, name):
    from bench.sketch.coverage import coverage

    tallies = coverage(recordings[name], 50, 0.95, seed=7)
    held = [held for tally in tallies.values() for held in tally.held]
    assert np.mean(held) >= 0.95
    # Leaves that are not merged yet are finer, so a width depends on how many there are; this is enough for none.
    widest = {"ships": 1.5}.get(name, 0.8)
    assert np.median(tallies["mean"].width) < widest and np.median(tallies["mean"].error) < 0.05


def test_bins_reach_the_trade_of_the_paper(recordings):
    from bench.sketch.quantisation import errors

    air = recordings["beijing"]
    column = air.elements.values[air.settings.position("TEMP")]
    _, usual, worst = errors(column[~np.isnan(column)], 64)
    assert usual <= 0.005 and worst <= 0.07


@pytest.mark.long
@pytest.mark.parametrize("error", [0.005, 0.02])
@pytest.mark.parametrize("name", ["beijing", "globe", "ships"])
def test_an_error_budget_is_kept_for_80_percent_of_the_values(recordings, name, error):
    from bench.sketch.quantisation import BUDGETED, budgeted

    for feature in BUDGETED[name]:
        found = budgeted(recordings[name], feature, error)
        # Values that are spread evenly would keep it, all of them, with so many bins of equal width.
        assert found.kept >= 0.8 and found.bins <= 2 / (error * 12**0.5), feature


def test_a_sketch_of_fields_stops_growing(shared_data):
    from bench.sketch.year import year

    taken = year(100, shared_data, step=6)
    # Runs that are not merged yet make it go up and down.
    assert taken.kept_bytes[60:].max() <= 1.25 * taken.kept_bytes[30:60].max()

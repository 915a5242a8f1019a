"""That a join asks for far too much is known before much is looked at; what rooms steps have."""

import numpy as np
import pytest

from streaming.operators import allowance
from streaming.operators.allowance import SAMPLE, PairAllowance
from streaming.operators.failures import Failures
from streaming.operators.region_map import RegionMap
from streaming.servers.region.place import RegionPlace
from streaming.spaces import EARTH
from tests.servers.harness import Engine
from tests.servers.test_room import TIMED, everything, fleet, refusals, registered, track


def timed(distance):
    """An interval join of each ship with each other ship."""
    join = {**TIMED["join"], "distance": distance}
    return TIMED | {"kind": "interval_join", "lower_s": -10, "upper_s": 10, "join": join}


def test_that_a_join_asks_for_far_too_much_is_known_by_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 400_000)
    taken = []

    class Counted(PairAllowance):
        def take(self, pairs):
            taken.append(pairs)
            return super().take(pairs)

    monkeypatch.setattr("streaming.servers.region.place.PairAllowance", Counted)
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    fragments = engine.run(fleet(0), [registered(1, everything())])
    assert refusals(fragments).keys() == {1}
    assert sum(taken) <= 2 * SAMPLE


def test_a_join_that_alone_asks_for_too_much_is_refused_before_the_others_are_looked_at(tmp_path, monkeypatch):
    engine, found = Engine(tmp_path, 1, 1, rescaled=0.0), []
    engine.may_fail = True
    run = Failures.find

    def counted(failures, queries, pairs):
        found.append(pairs)
        return run(failures, queries, pairs)

    monkeypatch.setattr(Failures, "find", counted)
    engine.run(fleet(0), [registered(number, everything(100_000 + number)) for number in range(1, 9)])
    found.clear()
    engine.run(fleet(1), [])
    usual = len(found)
    found.clear()
    fragments = engine.run(fleet(2), [registered(99, everything())])
    assert refusals(fragments).keys() == {99}
    assert usual > 1 and len(found) == 1 + usual


def test_an_interval_join_that_begins_looks_at_no_report_that_came_before(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "RUNNING", 4_100_000)
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    fragments = [engine.run(fleet(step), [registered(1, timed(10))][step:]) for step in range(3)]
    # All reports of a batch meet, each way, which takes most of the room.
    fragments.append(engine.run(fleet(3), [registered(2, timed(20_000_000))]))
    assert [refusals(one) for one in fragments] == [{}] * 4


def test_all_regions_together_have_one_room_whatever_they_have_copies_of():
    rng = np.random.default_rng(3)
    places = rng.uniform((-170, -80), (170, 80), (4_000, 2))
    bounds, none = np.hstack([places, places]), np.empty((0, 4))
    for regions in 1, 2, 4:
        known = RegionMap.grid(EARTH, regions)
        rooms = [RegionPlace(number, known).allowance(bounds[:900], bounds).most for number in range(regions)]
        assert sum(rooms) == pytest.approx(PairAllowance(900, 4_000).most, rel=0.01)
        rooms = [RegionPlace(number, known).allowance_for_elements(bounds[:900]).most for number in range(regions)]
        assert sum(rooms) == pytest.approx(allowance.RUNNING + allowance.EACH * 900, rel=0.01)
        assert RegionPlace(0, known).allowance(none, none).most == allowance.MOST / regions


@pytest.mark.parametrize("room, left_out", [(2_000, {1}), (10_000_000, set())])
def test_a_track_that_goes_on_has_less_room_than_one_that_begins(room, left_out, tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 10_000_000)
    monkeypatch.setattr(allowance, "RUNNING", room)
    monkeypatch.setattr(allowance, "EACH", 0)
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    control = [{"op": "tick", "now_us": 0}, registered(1, track(0, 100_000))]
    assert refusals(engine.run(fleet(0), control)) == {}
    assert refusals(engine.run(fleet(1), [])).keys() == left_out

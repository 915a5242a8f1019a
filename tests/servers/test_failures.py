"""A user-defined filter that fails is told of the queries whose elements or pairs it failed on, and of no others."""

import math

import pytest
import shapely

from streaming.elements import box_elements
from streaming.layers.features import feature_table
from streaming.logs import fragment_fields, read_fragment
from streaming.operators.comparison import Comparison
from streaming.results import events_of
from streaming.spaces import EARTH
from streaming.state.codec import HEAD
from streaming.state.manifest import read_manifest
from tests.servers.harness import Client, Engine, one
from tests.udf.wrong import Good

PICKY, GOOD = {"filters": [{"udf": "picky"}]}, {"filters": [{"udf": "good", "argument": "s"}]}
AROUND, FAR = {"lo": [0, 0], "hi": [2, 2]}, {"lo": [50, 50], "hi": [52, 52]}
ERROR = "the filter picky failed: KeyError: 'altitude'"


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path)


def register(query, plan, revision=1):
    return {"op": "register", "query": query, "revision": revision, "plan": {"stream": "ships", **plan}}


def ship(version=1, x=1.0):
    return ("ships", 0, box_elements("ships", ["s"], [version], [[x, 1.0, -math.inf, x, 1.0, math.inf]], [{}]))


def failures(fragments):
    """Return what failed, by query and revision; from the log of events as from the result log."""
    told = {}
    for fragment in fragments:
        written = {name.encode(): value for name, value in fragment_fields(events_of(fragment)).items()}
        written = {name: str(v).encode() if isinstance(v, int | str) else v for name, v in written.items()}
        assert read_fragment(written, EARTH).failures == fragment.failures
        for failure in fragment.failures:
            told |= {tuple(query): failure["error"] for query in failure["queries"]}
    return told


def test_the_queries_on_whose_elements_a_filter_failed_are_named(acme, engine):
    client = Client()
    plans = {
        1: {"compare": AROUND, **PICKY},
        2: {"compare": FAR, **PICKY},
        3: {"compare": AROUND, **GOOD},
        4: {"compare": AROUND, "where": "speed_mps > 5", **PICKY},
        5: {"compare": AROUND, "emit": "all", **PICKY},
        6: {"compare": AROUND, **PICKY},
    }
    control = [register(query, plan, revision=query + 6) for query, plan in plans.items()]
    fragments = engine.run([ship()], control)
    client.receive(fragments)
    assert failures(fragments) == dict.fromkeys([(1, 7), (5, 11), (6, 12)], ERROR)
    assert [query for query, answer in client.answers.items() if answer] == [3]
    assert failures(engine.run([], [])) == {}
    assert failures(engine.run([ship(2, 1.5)], [])) == dict.fromkeys([(1, 7), (5, 11), (6, 12)], ERROR)
    edited = [register(1, {"compare": AROUND}, 8), register(5, {"compare": FAR, "emit": "all", **PICKY}, 12)]
    assert failures(engine.run([ship(3)], edited)) == {(6, 12): ERROR}


@pytest.mark.parametrize("place", ["filters", "pair_filters"])
def test_a_join_is_named_for_the_filters_of_features_and_of_pairs(acme, engine, place):
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))
    zones = {"layer": "zones", "predicate": "intersects"}
    plans = {
        1: {"kind": "join", "join": {**zones, place: [{"udf": "picky"}]}},
        2: {"kind": "join", "join": zones},
        3: {"kind": "join", "join": {**zones, place: [{"udf": "picky"}]}, "area": FAR},
        4: {"kind": "join", "join": {**zones, place: [{"udf": "picky"}]}},
    }
    control = [{"op": "layer", "layer": "zones", "version": version}]
    fragments = engine.run([ship()], control + [register(query, plan) for query, plan in plans.items()])
    assert failures(fragments) == {(1, 1): ERROR, (4, 1): ERROR}
    assert failures(engine.run([ship(2, 1.5)], [])) == {(1, 1): ERROR, (4, 1): ERROR}


@pytest.mark.parametrize("place", ["filters", "pair_filters"])
def test_a_join_with_a_stream_is_named_for_the_filters_of_partners_and_of_pairs(acme, engine, place):
    ships = {"stream": "ships", "predicate": "intersects"}
    plans = {
        1: {"kind": "join", "join": {**ships, place: [{"udf": "picky"}]}},
        2: {"kind": "join", "join": ships},
        3: {"kind": "join", "join": {**ships, place: [{"udf": "picky"}]}, "area": FAR},
        4: {"kind": "join", "join": ships, **PICKY},
    }
    other = ("ships", 0, box_elements("ships", ["t"], [1], [[1.0, 1.0, -math.inf, 1.0, 1.0, math.inf]], [{}]))
    fragments = engine.run([ship(), other], [register(query, plan) for query, plan in plans.items()])
    assert failures(fragments) == {(1, 1): ERROR, (4, 1): ERROR}
    assert failures(engine.run([], [])) == {}


@pytest.mark.parametrize("partner", ["layer", "stream"])
def test_a_join_that_raises_is_told_and_the_others_are_answered(engine, monkeypatch, partner):
    version = engine.layers.write("zones", feature_table("zones", ["z"], [shapely.box(0, 0, 2, 2)], [{}]))

    def breaking(method):
        def broken(comparison, *told):
            if comparison.predicate == "touches":
                raise shapely.errors.GEOSException("a point array must contain 0 or >1 elements")
            return method(comparison, *told)

        return broken

    for name in ("measured", "judged"):  # joins with layers, and with streams
        monkeypatch.setattr(Comparison, name, breaking(getattr(Comparison, name)))
    engine.may_fail = True
    partners = {"layer": "zones"} if partner == "layer" else {"stream": "ships"}
    plans = {
        1: {"kind": "join", "join": {**partners, "predicate": "touches"}},
        2: {"kind": "join", "join": {**partners, "predicate": "intersects"}},
        3: {"compare": AROUND},
    }
    other = ("ships", 0, box_elements("ships", ["t"], [1], [[1.0, 1.0, -math.inf, 1.0, 1.0, math.inf]], [{}]))
    control = [{"op": "layer", "layer": "zones", "version": version}]
    fragments = engine.run([ship(), other], control + [register(query, plan) for query, plan in plans.items()])
    client = Client()
    client.receive(fragments)
    (told,) = failures(fragments).items()
    assert told == ((1, 1), "GEOSException: a point array must contain 0 or >1 elements")
    assert {query for query, answer in client.answers.items() if answer} == {2, 3}


def test_the_cost_of_a_query_is_told_with_its_revision_where_it_is_large(acme, engine, monkeypatch):
    monkeypatch.setattr("streaming.engine.fragments.COST_REPORTED_S", 0.0)
    plans = {1: {"compare": AROUND, **GOOD}, 2: {"compare": AROUND, **GOOD}, 3: {"compare": AROUND}}
    fragments = engine.run([ship()], [register(query, plan, revision=query + 6) for query, plan in plans.items()])
    told = [fragment.costs for fragment in fragments if fragment.costs]
    assert sorted(cost[:2] for costs in told for cost in costs["queries"]) == [[1, 7], [2, 8], [3, 9]]
    assert all(costs["ms"] >= cost for costs in told for *_, cost in costs["queries"])
    assert {region.costs.get("ms") for region in map(events_of, fragments)} == {f.costs.get("ms") for f in fragments}


def test_a_plan_that_a_release_refuses_is_told_until_the_query_is_edited_also_after_another_restart(engine):
    plans = {1: {"compare": AROUND}, 2: {"compare": AROUND, "where": "speed > 5"}}
    engine.saved_every = 1
    engine.run([ship()], [register(query, plan, 3) for query, plan in plans.items()])
    (level,) = (
        file for part, file in read_manifest(engine.layout.store.files, 0).states["registry"].items() if part != HEAD
    )
    path = engine.root / level.name
    path.write_bytes(path.read_bytes().replace(b"speed > 5", b"never (a "))
    told = {"refused": True, "queries": [[2, 3]]}
    for control in ([], [register(7, {"compare": AROUND})], [register(2, plans[2], 3)]):
        engine.restart()
        fragments = engine.run([], control)
        ((failure,),) = (fragment.failures for fragment in fragments if fragment.failures)
        assert told.items() <= failure.items()
        assert failure["error"].startswith("this release refuses the plan")
    assert fragments[0].acks == ({"query": 2, "revision": 3, "op": "register", "error": failure["error"]},)
    assert not failures(engine.run([], [register(2, plans[2], 4)]))


@pytest.mark.parametrize("emit", ["changes", "membership"])
def test_a_range_that_moves_has_no_answer_while_its_filter_fails_and_the_whole_one_afterwards(
    acme, engine, monkeypatch, emit
):
    judge = Good.filter_element

    def fussy(self, elements, argument):
        if "sad" in elements["key"].to_pylist():
            raise KeyError("altitude")
        return judge(self, elements, argument)

    monkeypatch.setattr(Good, "filter_element", fussy)

    def report(now_s, **places):
        ships = [("ships", 0, one("ships", key, now_s, [x, 1.0, 0, x, 1.0, 0], {})) for key, x in places.items()]
        fragments = engine.run(ships, [{"op": "tick", "now_us": now_s * 1_000_000}, *control])
        client.receive(fragments)
        control.clear()
        return set(client.answers[1]), failures(fragments), set(client.answers[2])

    client, plan = Client(), {"around": {"at": [1, 1], "radius": 300_000}, "emit": emit}
    control, error = [register(1, {**plan, **GOOD}), register(2, plan)], "the filter good failed: KeyError: 'altitude'"
    assert report(0, s=1.0, sad=2.0) == (set(), {(1, 1): error}, {"s", "sad"})
    assert report(1, s=1.5) == (set(), {}, {"s", "sad"})
    assert report(2, s=1.0) == (set(), {(1, 1): error}, {"s", "sad"})
    assert report(3, sad=9.0) == (set(), {}, {"s"})
    assert report(6) == ({"s"}, {}, {"s"})
    assert report(7, s=9.0, sea=1.0) == ({"sea"}, {}, {"sea"})

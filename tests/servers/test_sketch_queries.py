"""Queries of sketches are answered from all regions together, after every tick, through restarts, splits and edits."""

import random
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given

from streaming.engine import fragments
from streaming.results import ENTERED, LEFT, STAYED
from streaming.results.netting import net
from tests.draws import examples, rngs
from tests.servers.harness import Client, Engine
from tests.servers.test_sketching import HOUR_US, ON, accepted, random_elements, table_of

SECOND_US = 1_000_000
EAST = {"lo": [0.0, -90.0], "hi": [180.0, 90.0]}
PLANS = {
    1: {"ask": [{"question": "count"}, {"question": "mean", "features": ["speed_mps"]}]},
    2: {"ask": [{"question": "max", "features": ["draught_m"]}], "time": {"ranges": [{"to": "1970-01-01T12:00Z"}]}},
    3: {"ask": [{"question": "deciles", "features": ["speed_mps"]}, {"question": "cells", "level": 2}], "area": EAST},
    4: {"ask": [{"question": "sum", "features": ["speed_mps"]}], "once": True},
}


def register(query, revision=1, **more):
    plan = {"stream": "ships", "kind": "sketch"} | PLANS[query] | more
    return {"op": "register", "query": query, "revision": revision, "plan": plan}


def tick(second):
    return {"op": "tick", "now_us": second * SECOND_US}


def speeds(elements):
    return [p["speed_mps"] for *_, p in elements if p["speed_mps"] != "fast"]


def answers_of(client, query):
    """The answers that a client holds, in the order of the questions."""
    return [orjson.loads(client.answers[query][key][1]) for key in sorted(client.answers[query])]


def check(client, elements):
    """What a client holds is what brute force says of the elements, or holds within the bounds of what it was told."""
    count, mean = answers_of(client, 1)
    assert count["answers"][0]["value"] == len(elements)
    if speeds(elements):
        assert mean["answers"][0]["value"] == pytest.approx(np.mean(speeds(elements)))
    else:
        assert mean["answers"][0]["value"] is None
    early = [p["draught_m"] for _, time_us, _, p in elements if time_us < 12 * HOUR_US and "draught_m" in p]
    (highest,) = answers_of(client, 2)
    assert highest["answers"][0]["value"] == (max(early) if early else None)
    deciles, cells = answers_of(client, 3)
    east = [element for element in elements if element[2][0] >= 0]
    assert sum(cells["cells"]["value"]) == len(east)
    if speeds(east):
        for told in deciles["answers"]:
            truth = np.quantile(speeds(east), told["part"], method="inverted_cdf")
            assert told["low"] - 1e-6 <= truth <= told["high"] + 1e-6


@examples(10)
@given(rngs())
def test_answers_equal_brute_force_after_every_tick(rng):
    with tempfile.TemporaryDirectory() as folder:
        engine, client = Engine(Path(folder), partitions=rng.choice([1, 2]), regions=rng.choice([1, 4])), Client()
        seen = []
        for second in range(1, rng.randrange(4, 12)):
            elements = random_elements(rng, rng.randrange(0, 10))
            control = [ON, *map(register, PLANS)] if second == 1 else []
            ticked = second == 1 or rng.random() < 0.6
            control += [tick(second)] if ticked else []
            control += [{"op": "snapshot", "query": rng.choice(list(PLANS))}] if rng.random() < 0.3 else []
            client.receive(engine.run([("ships", 0, table_of(elements))], control))
            seen += elements
            if rng.random() < 0.2:
                engine.restart()
            if ticked:
                check(client, accepted(seen))


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path, rescaled=0.0)


def told(fragments, query):
    rows = net(fragments)
    return [row for row in rows.to_pylist() if row["query"] == query]


def test_a_question_that_is_asked_once_is_answered_once(engine):
    engine.run([("ships", 0, table_of(random_elements(random.Random(1), 30)))], [ON])
    assert [row["sign"] for row in told(engine.run([], [register(4)]), 4)] == [ENTERED]
    more = table_of(random_elements(random.Random(2), 30))
    assert not told(engine.run([("ships", 0, more)], [tick(5)]), 4)


def test_an_answer_that_stays_within_its_bounds_is_not_told_again(engine):
    engine.run([("ships", 0, table_of(random_elements(random.Random(1), 30)))], [ON, register(1), tick(1)])
    assert not told(engine.run([], [tick(2)]), 1)
    changed = told(engine.run([("ships", 0, table_of(random_elements(random.Random(2), 30)))], [tick(3)]), 1)
    assert {row["sign"] for row in changed} == {STAYED}


def test_an_edit_ends_the_answers_of_the_former_questions(engine):
    engine.run([("ships", 0, table_of(random_elements(random.Random(1), 30)))], [ON, register(1), tick(1)])
    edited = register(1, 2, ask=[{"question": "min", "features": ["draught_m"]}])
    rows = told(engine.run([], [edited]), 1)
    assert sorted((row["sign"], row["key"]) for row in rows) == [
        (LEFT, "1 count"),
        (LEFT, "2 mean speed_mps"),
        (ENTERED, "1 min draught_m"),
    ]


def test_a_query_that_ends_takes_its_answers_with_it(engine):
    engine.run([("ships", 0, table_of(random_elements(random.Random(1), 30)))], [ON, register(1), tick(1)])
    rows = told(engine.run([], [{"op": "cancel", "query": 1, "revision": 2}]), 1)
    assert {row["sign"] for row in rows} == {LEFT} and len(rows) == 2


def test_what_is_not_sketched_fails_by_itself(engine):
    engine.may_fail = True
    elements = table_of(random_elements(random.Random(1), 30))
    wrong = register(2, ask=[{"question": "mean", "features": ["rain"]}])
    fragments = engine.run([("ships", 0, elements)], [ON, register(1), wrong, tick(1)])
    failures = {failure["error"]: failure["queries"] for fragment in fragments for failure in fragment.failures}
    assert failures == {"a feature must be one of speed_mps, draught_m; got 'rain'": [[2, 1]]}
    assert len(told(fragments, 1)) == 2
    # Once the sketch has the feature, the query is tried again.
    wet = ON | {"sketch": ON["sketch"] | {"features": ["speed_mps", "draught_m", "rain"]}}
    assert [row["sign"] for row in told(engine.run([], [wet, tick(10)]), 2)] == [ENTERED]


def test_a_stream_that_is_not_sketched_has_no_answer(engine):
    engine.may_fail = True
    fragments = engine.run([], [register(1), tick(1)])
    errors = {failure["error"] for fragment in fragments for failure in fragment.failures}
    assert errors == {"the stream ships is not sketched: switch its sketch on in the admin"}


def test_what_an_answer_cost_is_told_of_each_region_and_of_the_assembler(engine, monkeypatch):
    monkeypatch.setattr(fragments, "COST_REPORTED_S", 0.0)
    elements = table_of(random_elements(random.Random(1), 30))
    costs = [fragment.costs for fragment in engine.run([("ships", 0, elements)], [ON, register(1), tick(1)])]
    assert len(costs) == engine.region_map.regions + 1
    assert all([query for query, *_ in told.get("queries", ())] == [1] for told in costs), costs

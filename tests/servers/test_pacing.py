"""Queries of sketches that look at many leaves take turns; small ones are answered at every tick."""

import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.results.netting import net
from streaming.servers.ways.sketches import pacing
from streaming.servers.ways.sketches.pacing import KEPT_US, LEAVES_A_TICK, US_A_LEAF, SketchPace
from tests.servers.harness import Engine
from tests.servers.test_sketch_queries import register, tick
from tests.servers.test_sketching import ON, random_elements, table_of

SECOND_US = 1_000_000
# Each has a cell for each place.
CELLS = {"ask": [{"question": "cells", "level": 6}]}

WORLD = {"lo": [-180.0, -90.0], "hi": [180.0, 90.0]}


def elements_of(rng, second):
    """Elements of a second: their times are after those of the second before."""
    return [(key, second * SECOND_US + at, *more) for at, (key, _, *more) in enumerate(random_elements(rng, 30))]


def told(fragments):
    """The answers that a batch tells, by query."""
    rows = net(fragments).to_pylist()
    return {row["query"]: orjson.loads(row["properties"]) for row in rows if row["sign"] != -1}


@pytest.fixture
def few_leaves(monkeypatch):
    """More than 20 leaves are many, and 30 of them may be looked at in a second."""
    monkeypatch.setattr(pacing, "LEAVES_A_TICK", 20)
    monkeypatch.setattr(pacing, "US_A_LEAF", SECOND_US // 30)


def ran(folder, seconds, restarts=()):
    """Return what is told in each second by a small query 1, and by two large ones, and the elements of all seconds."""
    engine, rng, found, seen = (
        Engine(folder, regions=2, partitions=1, rescaled=0.0, saved_every=1),
        random.Random(3),
        [],
        [],
    )
    plans = [register(1), register(2, **CELLS), register(3, **CELLS | {"area": WORLD})]
    for second in range(1, seconds):
        elements = elements_of(rng, second)
        control = [ON | {"sketch": ON["sketch"] | {"first": 1}}, *plans] if second == 1 else []
        found.append(told(engine.run([("ships", 0, table_of(elements))], [*control, tick(second)])))
        seen.append(elements)
        if second in restarts:
            engine.restart()
    return found, seen


def test_large_queries_take_turns_beside_a_small_one_that_is_answered_at_every_tick(tmp_path, few_leaves):
    found, seen = ran(tmp_path, 40)
    assert all(1 in answers for answers in found)
    turns = {query: [second for second, answers in enumerate(found) if query in answers] for query in (2, 3)}
    for query, other in ((2, 3), (3, 2)):
        # All are answered at once when they are new, and then one after the other.
        assert turns[query][0] == 0 and len(turns[query]) > 2
        for before, after in zip(turns[query][1:], turns[query][2:], strict=False):
            assert after - before > 2
            assert any(before <= second <= after for second in turns[other])
    for second, answers in enumerate(found):
        known = sum(map(len, seen[: second + 1]))
        assert answers[1]["question"] in ("count", "mean")
        for query in {2, 3} & answers.keys():
            assert sum(answers[query]["cells"]["value"]) == known


def test_turns_are_the_same_after_restarts(tmp_path, few_leaves):
    whole, _ = ran(tmp_path / "whole", 30)
    again, _ = ran(tmp_path / "again", 30, restarts=(4, 5, 13, 21))
    assert [sorted(answers) for answers in whole] == [sorted(answers) for answers in again]


def test_a_batch_that_runs_again_answers_the_same_queries(tmp_path, few_leaves):
    engine, rng = Engine(tmp_path, regions=2, partitions=1, rescaled=0.0, saved_every=1), random.Random(3)
    control = [ON | {"sketch": ON["sketch"] | {"first": 1}}, register(1), register(2, **CELLS)]
    for second in range(1, 20):
        blocks = [("ships", 0, table_of(elements_of(rng, second)))]
        once = told(engine.run(blocks, [*control, tick(second)]))
        engine.rewind()
        engine.forget()
        again = told(engine.run(blocks, [*control, tick(second)]))
        assert once.keys() == again.keys()
        control = []


def test_a_large_query_that_fails_does_not_stop_the_turns_of_others():
    pace = SketchPace({1: 10 * LEAVES_A_TICK, 2: 10 * LEAVES_A_TICK})
    assert pace.due([1, 2], SECOND_US) == {1}
    assert pace.after([1], [1, 2], {}, SECOND_US).due([1, 2], 2 * SECOND_US) == {2}


@given(st.lists(st.integers(0, 4 * LEAVES_A_TICK), min_size=1, max_size=12), st.integers(1, 5))
def test_all_queries_have_turns_and_large_ones_take_a_twentieth_of_the_time(costs, every_s):
    queries, pace, looked, asked = range(len(costs)), SketchPace(), 0, [0] * len(costs)
    ticks = 60 * len(costs)
    for number in range(ticks):
        now_us = number * every_s * SECOND_US
        due = pace.due(queries, now_us)
        small = pace._small(queries)
        if number:
            looked += sum(costs[query] for query in due - small)
        for query in due:
            asked[query] += 1
        pace = pace.after(due, queries, {query: costs[query] for query in due}, now_us)
        assert number == 0 or sum(costs[query] for query in small) <= LEAVES_A_TICK
        assert small <= due
    assert min(asked) > 1
    assert looked * US_A_LEAF <= ticks * every_s * SECOND_US + KEPT_US + 4 * LEAVES_A_TICK * US_A_LEAF

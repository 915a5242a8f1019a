"""Queries whose boxes move: their answers stay right, and only the objects where the boxes differ are evaluated."""

import random

import numpy as np
import pytest

from streaming.elements import bounds_of, box_elements
from streaming.operators.boxes import differences, intersects
from streaming.operators.query_levels import QueryLevels
from streaming.plans import parse_plan
from streaming.servers.control.answer_numbers import AnswerNumbers
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH
from tests.oracle import satisfies
from tests.servers.harness import Client, Engine

QUERIES = range(6)


def panned(rng, document, round_the_end):
    """Return a plan as a person edits it: most often, its box moves; seldom, something else changes."""
    document = dict(document)
    what = rng.random()
    if what < 0.1:
        return document | {"where": rng.choice(["", "speed > 3"])}
    if what < 0.2:
        return document | {"report": rng.choice(["inside", "outside"])}
    if what < 0.3:  # where others look, or where somebody looked before
        low, high = [170, 0], [176, 6]
    else:
        box = document["compare"]
        low = [box["lo"][axis] + rng.choice([-2, -0.5, 0, 0, 0.5, 2]) for axis in (0, 1)]
        high = [max(low[axis], box["hi"][axis] + rng.choice([-2, 0, 0, 2])) for axis in (0, 1)]
        low[1], high[1] = max(-90, low[1]), min(90, high[1])
        if not (-180 <= low[0] < 180 and low[0] <= high[0] <= low[0] + 360 and low[1] <= high[1]):
            low, high = [-180, -3], [-172, 5]
    if not round_the_end:
        high[0] = min(high[0], 180)
    return document | {"compare": {"lo": low, "hi": high}}


def moved_elements(rng, numpy_rng, version):
    """Return new elements of some objects about the end of the circle, points and boxes, and what they are."""
    keys = rng.sample(range(60), rng.randint(0, 20))
    low = numpy_rng.uniform([165, -6], [195, 8], (len(keys), 2)).round(1)
    size = np.where(numpy_rng.random((len(keys), 1)) < 0.3, numpy_rng.uniform(0, 4, (len(keys), 2)), 0)
    low[:, 0] = (low[:, 0] + 180) % 360 - 180
    properties = [{"speed": rng.randint(0, 6)} for _ in keys]
    names, version = [f"ship {key}" for key in keys], np.full(len(keys), version)
    return box_elements("ships", names, version, boxes_of(low, low + size), properties)


def boxes_of(low, high):
    """Return boxes of the plane as boxes without an altitude."""
    return np.c_[low, np.full(len(low), -np.inf), high, np.full(len(low), np.inf)]


@pytest.mark.long
@pytest.mark.separate_seeds(*range(6))
def test_answers_are_right_while_boxes_move(tmp_path, seed):
    rng, numpy_rng = random.Random(seed), np.random.default_rng(seed)
    engine, client, truth, plans, revisions = Engine(tmp_path), Client(), {}, {}, {}
    kept = 0
    for batch in range(60):
        table = moved_elements(rng, numpy_rng, batch)
        rows = zip(
            table["key"].to_pylist(), bounds_of(table["bounds"]).tolist(), table["properties"].to_pylist(), strict=True
        )
        truth |= {key: (box, text) for key, box, text in rows}
        control = []
        for _ in range(rng.choice([0, 1, 1, 2, 5])):
            query = rng.choice(QUERIES)
            revisions[query] = revisions.get(query, 0) + 1
            if query in plans and rng.random() < 0.1:
                del plans[query]
                control.append({"op": "cancel", "query": query, "revision": revisions[query]})
                continue
            whole = {"stream": "ships", "compare": {"lo": [170, 0], "hi": [176, 6]}}
            plans[query] = panned(rng, plans.get(query, whole), round_the_end=seed % 2)
            entry = {"op": "register", "query": query, "revision": revisions[query], "plan": plans[query]}
            control += rng.choice([[entry], [entry, {"op": "snapshot", "query": query}]])
        if rng.random() < 0.2:
            engine.restart()
        client.receive(engine.run([("ships", batch, table)], control))
        registry = engine.layout.store.registry(engine.batch)
        kept += len(registry.numbers.other)
        for query in QUERIES:
            plan = parse_plan(plans[query], EARTH) if query in plans else None
            expected = {key: one for key, one in truth.items() if plan and satisfies(plan, "ships", *one)}
            assert client.answers[query] == expected, (batch, query)
    assert kept


def test_only_objects_where_the_boxes_differ_are_evaluated(tmp_path, monkeypatch):
    rng, engine, client = np.random.default_rng(1), Engine(tmp_path, 1, 1), Client()
    low = rng.uniform(0, 10, (1_000, 2))
    keys, properties = [f"ship {key}" for key in range(1_000)], [{}] * 1_000
    table = box_elements("ships", keys, np.zeros(1_000, dtype=np.int64), boxes_of(low, low), properties)
    plan = {"stream": "ships", "area": {"lo": [1, 1], "hi": [9, 9]}}
    client.receive(engine.run([("ships", 1, table)], [{"op": "register", "query": 1, "revision": 1, "plan": plan}]))
    evaluated, match = [], QueryLevels.match

    def counted(self, elements, *rest):
        evaluated.append(len(elements.stream))
        return match(self, elements, *rest)

    monkeypatch.setattr(QueryLevels, "match", counted)
    plan = plan | {"area": {"lo": [1.5, 1], "hi": [9.5, 9]}}
    client.receive(engine.run([], [{"op": "register", "query": 1, "revision": 2, "plan": plan}]))
    inside = (low >= [1.5, 1]).all(1) & (low <= [9.5, 9]).all(1)
    was = (low >= [1, 1]).all(1) & (low <= [9, 9]).all(1)
    assert len(client.answers[1]) == inside.sum()
    assert sum(evaluated) == (inside != was).sum() < 120


def test_an_element_that_meets_no_difference_meets_both_boxes_or_neither():
    rng = np.random.default_rng(2)

    def boxes(count):
        low = np.c_[rng.uniform(-180, 180, count), rng.uniform(-20, 20, count), rng.uniform(0, 9, count)].round()
        return np.hstack([low, low + rng.integers(0, [30, 15, 5], (count, 3))])

    were, are, elements = boxes(300), boxes(300), boxes(400)
    are[::3] = were[::3] + rng.integers(-3, 4, (100, 6))
    number, strips = differences(were, are, EARTH)
    pair, element = (part.ravel() for part in np.indices((300, 400)))
    changes = intersects(elements, element, were, pair, EARTH) != intersects(elements, element, are, pair, EARTH)
    strip, other = (part.ravel() for part in np.indices((len(strips), 400)))
    met = np.zeros((300, 400), dtype=bool)
    meets = intersects(elements, other, strips, strip, EARTH)
    met[number[strip[meets]], other[meets]] = True
    assert changes.sum() > 1_000
    assert not (changes & ~met.ravel()).any()


def registered(registry, **plans):
    """Return a registry after queries q1, q2, ... got plans that begin at some longitudes; None ends a query."""
    entries = []
    for name, x in plans.items():
        query = int(name[1:])
        known = registry.registrations.get(query)
        entry = {"op": "register", "query": query, "revision": known.revision + 1 if known else 1}
        plan = x and {"stream": "ships", "area": {"lo": [x, 0], "hi": [x + 5, 5]}}
        entries.append(entry | ({"plan": plan} if x else {"op": "cancel"}))
    return registry.apply(entries)[0]


def numbers(registry):
    return dict(zip(registry.ids.tolist(), registry.answer_of.tolist(), strict=True))


def test_an_answer_keeps_its_number_while_its_box_moves():
    first = registered(Registry(EARTH), q1=1)
    moved = registered(first, q1=2)
    assert numbers(moved) == numbers(first)
    # Another query with the first plan has an answer of its own, and so has a third one after that moved.
    both = registered(moved, q2=1)
    assert len(set(numbers(both).values())) == 2
    three = registered(registered(both, q2=3), q3=1)
    assert len(set(numbers(three).values())) == 3
    assert numbers(three)[1] == numbers(first)[1]
    assert numbers(three)[2] == numbers(both)[2]
    # Queries with equal plans share an answer, whatever its number.
    shared = registered(three, q4=2)
    assert numbers(shared)[4] == numbers(shared)[1]
    # Whoever shares an answer leaves it to the others.
    left = registered(shared, q1=7)
    assert numbers(left)[4] == numbers(shared)[4] != numbers(left)[1]
    ended = registered(left, q1=None, q2=None, q3=None, q4=None)
    assert ended.numbers == AnswerNumbers()


def test_of_two_queries_that_move_to_one_place_one_takes_the_others_answer():
    registry = registered(registered(Registry(EARTH), q1=1, q2=2), q1=3, q2=3)
    assert len(set(numbers(registry).values())) == 1
    crossed = registered(registered(Registry(EARTH), q1=1, q2=2), q1=2, q2=1)
    assert len(set(numbers(crossed).values())) == 2
    for order in ({"q2": 1, "q1": 2}, {"q1": 2, "q2": 1}):
        taken = registered(registered(Registry(EARTH), q1=1), **order)
        assert len(set(numbers(taken).values())) == 2

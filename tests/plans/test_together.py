"""Many documents read together give the plans, texts and errors that each gives by itself."""

import random

import orjson
import pytest

from streaming.plans import parse_plan, plan_document, together
from streaming.plans.together import parse_together
from streaming.spaces import EARTH, Dimension, Space

LINE = Space("line", (Dimension("x", "m", -10.0, 10.0),))
WIDE = Space("wide", (Dimension("x", "m", -1e18, 1e18), Dimension("angle", "deg", 0.0, 360.0, wraps=True)))


def number(rng):
    """Return a coordinate: mostly sound, some at the limits, some of another type."""
    odd = [None, True, "1", float("1e308"), 2**53 + 1, 2**60, -180, 180, 180.5, -0.0, 90, 91, [1]]
    return rng.choice(odd) if rng.random() < 0.06 else rng.choice([rng.uniform(-9, 9), rng.randint(-9, 9)])


def box(rng):
    count = rng.choice([1, 2, 2, 2, 3])
    low = [number(rng) for _ in range(count)]
    high = [
        n + rng.choice([0, 1, 2.5]) if type(n) in (int, float) and rng.random() < 0.97 else number(rng) for n in low
    ]
    strange = [{"lo": low}, {"lo": low, "hi": high[1:]}, {"lo": low, "hi": high, "mid": 1}, {"lo": "ab", "hi": "cd"}]
    strange += [[], 5, None, {"lo": [], "hi": []}, {"lo": {}, "hi": {}}, {"lo": low * 9, "hi": high * 9}]
    return rng.choice(strange) if rng.random() < 0.05 else {"lo": low, "hi": high}


def document(rng):
    """Return a document of any kind; few differ in more than their boxes."""
    kinds = [
        {"report": rng.choice(["inside", "outside"])},
        {},
        {"where": "speed > 3", "filters": [{"box": {"lo": [0, 0], "hi": [1, 1]}}, {"key": '"compare":{"lo"'}]},
        {"transform": [{"enlarge_value": rng.choice([1, 1.0])}], "emit": "all"},
        {"kind": "join", "join": {"layer": "},{"}},
        {"kind": "knn", "k": 3, "around": {"key": "a"}},
        {"around": {"key": "b", "radius": 5}},
        {"aggregate": {"function": "count"}},
        {"where": "never (a filter"},
        {"kind": "none"},
        {"strange": 1},
    ]
    boxes = {name: box(rng) for name in ("area", "compare") if rng.random() < 0.6}
    made = {"stream": rng.choice(["ships", "ships", ""])} | rng.choice([*kinds[:2] * 4, *kinds]) | boxes
    return rng.choice([5, None, [], "text"]) if rng.random() < 0.02 else made


def alone(document, space):
    try:
        plan = parse_plan(document, space)
        return plan, orjson.dumps(plan_document(plan, space))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.seeds(400)
def test_documents_read_together_are_read_as_each_by_itself(seed):
    rng, space = random.Random(seed), [EARTH, LINE, WIDE][seed % 3]
    documents = [document(rng) for _ in range(60)]
    for asked, told in zip(documents, parse_together(documents, space), strict=True):
        expected = alone(asked, space)
        if isinstance(told, Exception):
            assert (type(told), str(told)) == expected, asked
        else:
            assert told[:2] == expected and list(map(type, vars(told.plan).values())) == list(
                map(type, vars(expected[0]).values())
            ), asked
            assert hash(told.plan) == hash(expected[0]) and repr(told.plan) == repr(expected[0])


def test_a_key_that_is_null_is_not_a_missing_one():
    around = {"stream": "ships", "around": {"key": "b", "radius": 5}, "area": {"lo": [5, 7], "hi": [8, 7]}}
    first, second = parse_together([around, around | {"compare": None}], EARTH)
    assert not isinstance(first, Exception) and "got around and compare" in str(second)


def test_thousands_of_documents_that_differ_in_their_boxes_are_read_by_one(monkeypatch):
    read, real = [], together.parse_plan
    monkeypatch.setattr(together, "parse_plan", lambda *asked: (read.append(asked), real(*asked))[1])
    rng = random.Random(1)
    areas = [[rng.uniform(-90, 80), rng.uniform(-90, 80)] for _ in range(2_000)]
    documents = [{"stream": "ships", "area": {"lo": low, "hi": [low[0] + 1, low[1] + 1]}} for low in areas]
    assert [told.plan.area[:2] for told in parse_together(documents, EARTH)] == list(map(tuple, areas))
    assert len(read) == 1

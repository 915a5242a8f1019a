"""Many filters share the reading of properties, and the time that this takes."""

import itertools

import numpy as np
import orjson
import pyarrow as pa
import pytest

from streaming import property_columns
from streaming.filters import parse_filter, passes
from streaming.operators import conditions
from streaming.operators.conditions import Conditions
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.plans import parse_plan
from streaming.spaces import EARTH

BOX = {"lo": [0, 0], "hi": [1, 1]}
SHIPS = [{"speed": number, "kind": "ab"[number % 2]} for number in range(40)]


def elements():
    texts = [orjson.dumps(ship).decode() for ship in SHIPS]
    table = pa.table({"key": [str(number) for number in range(len(SHIPS))], "properties": texts})
    return Elements(np.zeros(len(SHIPS), np.int64), np.zeros((len(SHIPS), 6)), lambda rows: table.take(pa.array(rows)))


def asked(texts, row, query, failures=None):
    plans = [parse_plan({"stream": "s", "compare": BOX, "where": text}) for text in texts]
    return Conditions(plans, EARTH).passing(row, query, elements(), failures or Failures())


@pytest.mark.parametrize("shuffled", [False, True])
def test_each_pair_is_judged_by_its_own_filter(shuffled):
    texts = ["speed > 5", "", "kind = 'a'", "speed > 5", "speed IN (1, 2) OR kind = 'b'"]
    random = np.random.default_rng(1)
    row, query = (part.ravel() for part in np.mgrid[: len(SHIPS), : len(texts)])
    some = np.sort(random.permutation(len(row))[:120])
    some = random.permutation(some) if shuffled else some
    row, query = row[some], query[some]
    properties = pa.array([orjson.dumps(ship).decode() for ship in SHIPS])
    each = [passes(parse_filter(text), properties) if text else np.ones(len(SHIPS), dtype=bool) for text in texts]
    assert asked(texts, row, query).tolist() == [bool(each[q][r]) for r, q in zip(row, query, strict=True)]


def test_a_property_is_read_once_for_all_filters(monkeypatch):
    read = []
    texts_of = property_columns.property_texts
    monkeypatch.setattr(property_columns, "property_texts", lambda *of: read.append(of[1]) or texts_of(*of))
    texts = [f"speed > {number} AND kind = 'a'" for number in range(50)]
    for text in texts:
        parse_filter(text)
    read.clear()
    asked(texts, *(part.ravel() for part in np.mgrid[: len(SHIPS), :50]))
    assert sorted(read) == ["kind", "speed"]


def test_the_time_of_a_filter_is_shared_by_the_pairs_of_which_it_is_asked(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(conditions, "perf_counter", lambda: float(next(clock)))
    row, query = np.r_[np.arange(30), np.arange(10), np.arange(5)], np.repeat([0, 2, 1], [30, 10, 5])
    failures = Failures()
    asked(["speed > 5", "kind = 'a'", "speed > 5"], row, query, failures)
    assert failures.seconds == {0: pytest.approx(0.75), 1: pytest.approx(1), 2: pytest.approx(0.25)}


def test_keys_pass_the_elements_that_have_one_of_them():
    plan = parse_plan({"stream": "s", "compare": BOX, "filters": [{"keys": ["3", "39", "none"]}]})
    row = np.arange(len(SHIPS))
    passing = Conditions([plan], EARTH).passing(row, np.zeros_like(row), elements(), Failures())
    assert row[passing].tolist() == [3, 39]

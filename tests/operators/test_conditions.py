"""Many filters share the reading of properties, and what fails in one is its own."""

import numpy as np
import orjson
import polars as pl
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
    text_of = property_columns.property_text
    monkeypatch.setattr(property_columns, "property_text", lambda name: read.append(name) or text_of(name))
    texts = [f"speed > {number} AND kind = 'a'" for number in range(50)]
    for text in texts:
        parse_filter(text)
    read.clear()
    asked(texts, *(part.ravel() for part in np.mgrid[: len(SHIPS), :50]))
    assert sorted(read) == ["kind", "speed"]


def test_what_raises_in_one_filter_is_told_of_its_queries_alone(monkeypatch):
    passing = conditions.PropertyColumns.passing

    def broken(columns, expression, rows=None):
        if "666" in str(expression):
            raise pl.exceptions.ComputeError("no such luck")
        return passing(columns, expression, rows)

    texts = ["speed > 5", "speed < 666", "speed > 5"]
    for text in texts:
        parse_filter(text)
    monkeypatch.setattr(conditions.PropertyColumns, "passing", broken)
    row, query = (part.ravel() for part in np.mgrid[: len(SHIPS), :3])
    failures = Failures()
    keep = asked(texts, row, query, failures)
    assert keep.reshape(-1, 3).sum(0).tolist() == [34, 0, 34]
    assert failures.errors == {1: "the filter failed: ComputeError: no such luck"}


def test_what_the_machine_lacks_fails_the_batch():
    with pytest.raises(OSError, match="disk"):
        Failures().attempt(np.array([1]), "the filter", raising(OSError("disk")))
    with pytest.raises(MemoryError):
        Failures().attempt(np.array([1]), "the filter", raising(MemoryError()))


def raising(error):
    def step():
        raise error

    return step

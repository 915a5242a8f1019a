"""Rows that overlapping answers have alike are encoded once, and tell each answer what they would tell it alone."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.results import result_schema
from streaming.spaces import EARTH
from webapp.hub import encoding
from webapp.hub.encoding import NetChanges, objects_of
from webapp.hub.subscriptions import CHANGE, SNAPSHOT, FrameOf

SOME = st.sampled_from
ROWS = st.fixed_dictionaries(
    {
        "query": SOME([1, 2, 3]),
        "sign": SOME([1, 0, -1]),
        "reason": SOME([0, 1]),
        "key": SOME(["a", "b"]),
        "time_us": SOME([1, 2]),
        "bounds": SOME([[0.0, 0, -np.inf, 0, 0, np.inf], [0.0, 1, -np.inf, 0, 1, np.inf]]),
        "properties": SOME([None, "{}", '{"speed":1}', "no object"]),
        "partner": SOME([None, None, "p"]),
        "distance": SOME([None, None, 1.5]),
        "rank": SOME([None, None, 1]),
    }
)


class Changed:
    """A batch that changes answers by given rows."""

    number, newest_us, epoch, lost = 7, 1, "e", frozenset()

    def __init__(self, rows):
        rows = [row | {"key_hash": hash(row["key"]), "partner_hash": int(row["partner"] is not None)} for row in rows]
        schema = result_schema(EARTH)
        self.rows = pa.Table.from_pylist(rows, schema=schema).sort_by("query")

    def changes(self, queries):
        return self.rows.filter(pa.array(np.isin(self.rows["query"].to_numpy(), list(queries))))

    snapshots = changes


@given(st.lists(ROWS, max_size=60))
def test_answers_that_overlap_are_told_what_they_would_be_told_alone(rows):
    limit, encoding.MANY_ROWS = encoding.MANY_ROWS, 0
    try:
        changes = NetChanges(Changed(rows), {1, 2, 3}, json=True, space=EARTH)
    finally:
        encoding.MANY_ROWS = limit
    for query in (1, 2, 3):
        told, error = changes.objects(query)
        alone, wrong = objects_of(changes.table(query), EARTH)
        assert encoding.orjson.dumps(told) == encoding.orjson.dumps(alone)
        assert (error is None) == (wrong is None)


@pytest.mark.parametrize("kind", [CHANGE, SNAPSHOT])
def test_an_object_in_many_answers_is_encoded_once(kind, monkeypatch):
    row = {"sign": 1, "reason": 0, "key": "a", "time_us": 1, "bounds": [0.0] * 6, "properties": "{}", "partner": None}
    batch = Changed([row | {"query": query} for query in range(1, 201)])
    encoded = []
    json_rows = encoding.json_rows
    monkeypatch.setattr(
        encoding, "json_rows", lambda rows, space: encoded.append(rows.num_rows) or json_rows(rows, space)
    )
    frames = {FrameOf(kind, query, "json") for query in range(1, 201)}
    assert len(encoding.encode(batch, frames, 1, EARTH).frames) == 200
    assert [count for count in encoded if count] == [1]

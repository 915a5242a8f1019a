"""Result tuples of queries that move, of nearest neighbours and of aggregates: as JSON, as events, and in the log."""

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import bounds_array
from streaming.logs import fragment_fields, read_fragment
from streaming.results import (
    ENTERED,
    FRAME_METADATA,
    LEFT,
    MOVED,
    PLACED,
    STAYED,
    Fragment,
    events_of,
    frame,
    frames,
    joined_columns,
    json_rows,
    read_frame,
    result_schema,
)
from streaming.servers.answers.tuples import Results
from streaming.spaces import EARTH
from tests.draws import examples

PLAIN = {
    "query": 1,
    "sign": ENTERED,
    "reason": MOVED,
    "key": "a",
    "key_hash": 11,
    "time_us": 5,
    "properties": "{}",
    "partner": None,
    "partner_hash": 0,
    "partner_properties": None,
    "distance": None,
    "rank": None,
}
CROSSED = {"key": "cargo", "partner": "above 20", "partner_properties": '{"value":21.5}'}


def table(*rows):
    """Return result tuples, each as `PLAIN` but for some columns."""
    schema = result_schema(EARTH)
    columns = {name: [row[name] for row in (PLAIN | row for row in rows)] for name in PLAIN}
    columns["bounds"] = bounds_array(np.tile([1.0, 2.0, -np.inf, 1.0, 2.0, np.inf], (len(rows), 1)))
    nothing = [None] * len(rows)
    return pa.table([pa.array(columns.get(field.name, nothing), field.type) for field in schema], schema=schema)


def fragment(*rows, **more):
    return Fragment("e", 3, 9, 10, table(*rows), table(), **more)


def test_neighbours_have_distance_and_rank_and_those_that_leave_none():
    (near, gone), _ = json_rows(table({"distance": 12.5, "rank": 1}, {"sign": LEFT}))
    assert (near["distance"], near["rank"]) == (12.5, 1)
    assert not {"distance", "rank", "partner"} & set(gone)


def test_where_a_query_is_has_the_radius_even_where_it_is_not_known():
    (known, unknown), _ = json_rows(table({"sign": PLACED, "distance": 9260.0}, {"sign": PLACED, "key": ""}))
    assert (known["sign"], known["distance"], unknown["key"], unknown["distance"]) == ("@", 9260.0, "", None)
    assert "rank" not in known


def test_a_threshold_that_is_crossed_is_a_partner():
    ((row,), _) = json_rows(table(CROSSED))
    assert row["partner"] == {"key": "above 20", "properties": {"value": 21.5}, "distance": None}


def test_events_are_members_that_come_and_go_and_thresholds_but_no_places_and_no_groups():
    rows = [
        {"query": 1},
        {"query": 1, "sign": STAYED},
        {"query": 1, "sign": LEFT},
        {"query": 1, "sign": PLACED},
        {"query": 2, "key": "cargo"},
        {"query": 2, **CROSSED},
        {"query": 2, "sign": LEFT, "key": "tug"},
        {"query": 2, "sign": LEFT, **CROSSED},
        {"query": 2**40, **CROSSED},
    ]
    told = events_of(fragment(*rows, aggregates=(2, 2**40))).changes
    columns = zip(*(told[name].to_pylist() for name in ("query", "sign", "partner")), strict=True)
    assert list(columns) == [(1, ENTERED, None), (1, LEFT, None), (2, ENTERED, "above 20"), (2, LEFT, "above 20")]


@pytest.mark.parametrize("more", [{}, {"stale": {7: 2}}, {"sent": {7: (3, 0, 1), 8: ()}, "aggregates": (7, 8)}])
def test_a_fragment_comes_out_of_the_log_as_it_went_in(more):
    before = fragment({"rank": 3, "distance": 2.5}, {"sign": PLACED}, **more)
    fields = {name.encode(): value for name, value in fragment_fields(before).items()}
    written = {name: value if isinstance(value, bytes) else str(value).encode() for name, value in fields.items()}
    assert read_fragment(written, EARTH) == before


@pytest.mark.parametrize("text", ["[1]", "3", '"a"', "null", "{", '{"a": Infinity}'])
def test_properties_that_are_no_json_object_are_told_as_empty_with_an_error(text):
    (good, bad), unread = json_rows(table({"properties": '{"a":1}'}, {"key": "b", "properties": text}))
    assert (good["properties"], bad["properties"]) == ({"a": 1}, {})
    assert list(unread) == [1] and "properties must be a JSON object; those of 'b'" in unread[1]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_frame_has_the_bytes_of_an_arrow_stream(count):
    rows, head = table(*[{}] * 5).slice(1, count), {"type": "answer.change", "query": 1}
    schema, sink = rows.schema.with_metadata({FRAME_METADATA: orjson.dumps(head)}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(rows.combine_chunks().replace_schema_metadata(schema.metadata))
    assert frame(head, rows) == sink.getvalue().to_pybytes()
    assert read_frame(frame(head, rows)) == (head, rows.replace_schema_metadata(schema.metadata))


@examples(50)
@given(st.lists(st.integers(1, 4), max_size=5), st.integers(0, 3))
def test_frames_that_share_a_head_have_the_bytes_of_frames_alone(counts, before):
    rows, head = table(*[{"key": f"{row}"} for row in range(before + sum(counts))]).slice(before), {"batch": 1}
    made, start = frames(head, rows, counts), 0
    assert len(made) == len(counts)
    for one, count in zip(made, counts, strict=True):
        assert one == frame(head, rows.slice(start, count))
        start += count


def test_joined_frames_have_no_hashes_and_no_columns_of_nulls():
    assert joined_columns(table({})).schema.names == [
        "query",
        "sign",
        "reason",
        "key",
        "time_us",
        "bounds",
        "properties",
    ]
    assert "partner" in joined_columns(table({}, {"partner": "b"})).schema.names


def test_results_of_several_parts_of_a_step_name_the_aggregates_of_all():
    parts = [Results(table({}), table(), aggregates=numbers) for numbers in ((1, 2), (2, 3))]
    assert parts[0].plus(parts[1]).aggregates == (1, 2, 3)

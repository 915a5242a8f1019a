"""What a task counts for the metrics: queries within bounds, stages that add up, and counts that only grow."""

import time

import pyarrow as pa
import pytest

from streaming.engine.figures import STAGES, TOP_QUERIES, VIEWS, QueryFigures, TaskFigures
from streaming.results import ANSWER_NUMBERS, VIEW_NUMBERS, Fragment, result_schema
from streaming.servers.way import RegionInput
from streaming.spaces import EARTH


def fragment(queries, shared=None):
    """Return a fragment with a tuple for each of some numbers of queries."""
    nulls = {field.name: pa.nulls(len(queries), field.type) for field in result_schema(EARTH)}
    changes = pa.table(nulls | {"query": pa.array(queries, pa.int64())})
    return Fragment("epoch", 1, 0, 1, changes, changes.slice(0, 0), (), (), {}, 0, shared=shared or {})


def test_tuples_count_for_queries_views_and_the_first_of_those_that_share_an_answer():
    figures, answer = QueryFigures(), ANSWER_NUMBERS + 7
    figures.add([fragment([3, 3, 4, VIEW_NUMBERS, VIEW_NUMBERS + 9, answer], {answer: (4, 5)})], {4: 0.5})
    figures.add([fragment([3])], {4: 0.25, VIEW_NUMBERS + 9: 0.125})
    assert figures.top() == [[4, 0.75, 2], [VIEWS, 0.125, 2], [3, 0, 3]]


def test_the_costliest_queries_are_told_and_no_more_than_some():
    figures = QueryFigures()
    figures.add([fragment(list(range(1, 1000)))], {500: 1.0, 7: 2.0})
    told = figures.top()
    assert [query for query, *_ in told[:3]] == [7, 500, 1]
    assert len(told) == TOP_QUERIES


def test_an_interval_counts_on_from_what_the_one_before_has_told():
    first = TaskFigures()
    with first.stage("home"):
        time.sleep(0.002)
    first.read([RegionInput(0, {"elements": 5}, {})], oldest_us=time.time_ns() // 1000 - 3_000_000)
    first.end_batch([])
    before = first.told(written_bytes=100)
    assert before["lag_s"] == pytest.approx(3.0, abs=0.5)
    assert before["longest_s"] >= 0.002
    later = TaskFigures(before)
    later.read([RegionInput(0, {"elements": 2}, {})], oldest_us=time.time_ns() // 1000)
    later.end_batch([])
    told = later.told(written_bytes=11)
    assert (told["elements"], told["batches"], told["written_bytes"]) == (7, 2, 111)
    assert set(told["seconds"]) == set(STAGES)
    assert told["seconds"]["home"] == before["seconds"]["home"]

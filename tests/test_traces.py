"""Traces: which elements are sampled, the ids of their spans, and a collector that is away."""

import os
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased

from streaming import settings, trace_export
from streaming.elements import point_elements
from streaming.engine.batch_traces import EngineTraces
from streaming.errors import LookoutError
from streaming.results import (
    ANSWER_NUMBERS,
    ENTERED,
    FOCUS_MOVED,
    HANDOFF,
    LEFT,
    MOVED,
    PLACED,
    REGISTERED,
    STAYED,
    Fragment,
    result_schema,
)
from streaming.servers.way import RegionInput
from streaming.settings import trace_ratio
from streaming.spaces import EARTH
from streaming.trace_export import MOST_WAITING, Exporting
from streaming.traces import RECEIVE, WRITE, Sampled, Span, Traces, numbers, span_id, trace_id
from webapp.hub import AnswerSubscription
from webapp.hub.assembly import Batch
from webapp.hub.traces import HubTraces

RNG = np.random.default_rng(7)
AWAY = "spans of traces are lost: their collector is away, or too slow; they are counted"


def elements(count, time_us=0):
    keys = [f"ship {n}" for n in range(count)]
    return point_elements("ships", keys, np.full(count, time_us), RNG.uniform(-80, 80, (count, 2)), [None] * count)


@pytest.mark.parametrize("ratio", [0.01, 0.3])
def test_the_share_of_the_elements_that_are_sampled_is_the_ratio_for_many_objects_and_for_one(ratio):
    made = len(Traces(ratio).sampled([elements(100_000)]))
    assert made == pytest.approx(100_000 * ratio, rel=0.1)
    hashes, times_us = np.full(100_000, 12), 1_700_000_000_000_000 + 1_000_000 * np.arange(100_000)
    assert np.mean(numbers(hashes, times_us) < 2**64 * ratio) == pytest.approx(ratio, rel=0.1)


def test_all_stages_choose_the_same_elements_however_they_are_cut_into_tables_and_each_once():
    table, traces = elements(2_000), Traces(0.05)
    whole = {one.number for one in traces.sampled([table])}
    assert whole
    parts = [table.slice(start, 700).select(["time_us", "key_hash", "key"]) for start in range(0, 2_000, 700)]
    again = traces.sampled([*parts[::-1], table])
    assert len(again) == len(whole)
    assert {one.number for one in again} == whole


def test_ratio_1_samples_all_and_a_lower_ratio_a_part_of_those_of_a_higher_one():
    table = elements(3_000)
    chosen = [{one.key for one in Traces(ratio).sampled([table])} for ratio in (0.01, 0.2, 1.0)]
    assert chosen[0] < chosen[1] < chosen[2]
    assert len(chosen[2]) == 3_000


def test_no_two_elements_share_a_trace_and_no_two_spans_an_id():
    traces = {trace_id(one.number) for time_us in range(10) for one in Traces(1).sampled([elements(1_000, time_us)])}
    assert len(traces) == 10_000
    assert all(0 < number < 2**128 for number in traces)
    spans = [RECEIVE, WRITE, Span("engine.home", 3), *(Span("engine.send", b, r) for b in (3, 4) for r in range(4))]
    ids = {span_id(number, span) for number in (7, 8) for span in spans}
    assert len(ids) == 2 * len(spans)
    assert all(0 < number < 2**64 for number in ids)


def test_opentelemetrys_own_sampler_by_ratio_chooses_the_same_elements():
    chosen = {one.number for one in Traces(0.2).sampled([elements(500)])}
    sampler = TraceIdRatioBased(0.2)
    for one in Traces(1).sampled([elements(500)]):
        decision = sampler.should_sample(None, trace_id(one.number), "any").decision
        assert (decision is Decision.RECORD_AND_SAMPLE) == (one.number in chosen)


def test_the_spans_of_an_element_hang_on_each_other_although_each_stage_computes_its_own():
    kept = InMemorySpanExporter()
    exporting = Exporting(kept, {"service.name": "test"})
    traces, table = Traces(1, exporting), elements(1)
    began_ns = time.time_ns()
    traces.record(RECEIVE, None, traces.sampled([table]), began_ns, stream="ships")
    traces.record(WRITE, RECEIVE, traces.sampled([table]), began_ns + 1)
    batch, inputs = EngineTraces(traces), [RegionInput(2, {}, {"arrivals": table, "focals": table})]
    batch.home(9, 0, inputs, began_ns + 2)
    batch.send(9, inputs, began_ns + 3)
    exporting.flush()
    spans = kept.get_finished_spans()
    assert [span.name for span in spans] == ["gateway.receive", "gateway.write", "engine.home", "engine.send"]
    assert len({span.context.trace_id for span in spans}) == 1
    assert [span.parent and span.parent.span_id for span in spans] == [None, *(s.context.span_id for s in spans[:-1])]
    assert [span.start_time - began_ns for span in spans] == [0, 1, 2, 3]
    assert spans[0].attributes == {"lookout.stream": "ships", "lookout.object": "ship 0"}
    assert spans[3].attributes == {"lookout.object": "ship 0", "lookout.batch": 9, "lookout.region": 2}


@pytest.mark.parametrize(("name", "traced"), [("steps", 1), ("reports", 1), ("arrivals", 1), ("released", 0)])
def test_elements_are_traced_in_each_table_that_has_them_but_not_reports_of_batches_before(name, traced):
    spans = []
    batch = EngineTraces(Traces(1, SimpleNamespace(record=lambda *span: spans.append(span))))
    batch.send(9, [RegionInput(2, {}, {name: elements(1)})], time.time_ns())
    assert len(spans) == traced


def test_a_collector_that_never_answers_holds_up_nothing_and_the_losses_are_logged_once(monkeypatch, caplog):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "30")
        traces, some = Traces(1, Exporting.to_collector("test", "")), [Sampled(number, "a") for number in range(1, 101)]
        began_s = time.monotonic()
        for _ in range(MOST_WAITING // len(some) + 2):
            traces.record(RECEIVE, None, some, time.time_ns())
        assert time.monotonic() - began_s < 30
    assert [record.getMessage() for record in caplog.records] == [AWAY]


class Collector(SpanExporter):
    """Takes spans or refuses them."""

    takes = False

    def export(self, spans):
        return SpanExportResult.SUCCESS if self.takes else SpanExportResult.FAILURE


def test_once_the_collector_is_back_the_log_says_how_many_spans_were_lost(caplog):
    collector = Collector()
    exporting = Exporting(collector, {})
    traces, some = Traces(1, exporting), [Sampled(number, "a") for number in range(1, 11)]
    for takes in (False, False, True, True):
        collector.takes = takes
        traces.record(RECEIVE, None, some, time.time_ns())
        exporting.flush()
    told = [record.getMessage() for record in caplog.records if record.name == trace_export.__name__]
    assert told == [AWAY, "the collector of traces takes spans again: 20 were lost"]


def test_a_process_that_is_forked_sends_its_spans_from_a_thread_of_its_own(tmp_path):
    class File(SpanExporter):
        def export(self, spans):
            (tmp_path / str(os.getpid())).write_text(str(len(spans)))
            return SpanExportResult.SUCCESS

    exporting = Exporting(File(), {})
    child = os.fork()
    if not child:
        try:
            Traces(1, exporting).record(RECEIVE, None, [Sampled(5, "a")], time.time_ns())
            exporting.flush()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert [file.name for file in tmp_path.iterdir()] == [str(child)]


def test_a_ratio_without_the_packages_is_refused_with_how_to_install_them(monkeypatch):
    monkeypatch.setattr(settings, "TRACE_MODULES", ("no_such_package.trace",))
    with pytest.raises(LookoutError, match=r"pip install lookout\[traces\]; there is no no_such_package"):
        trace_ratio({"LOOKOUT_TRACE_RATIO": "0.1"})
    assert trace_ratio({}) == 0


@pytest.mark.parametrize("value", ["-0.1", "1.5", "half", "nan"])
def test_a_ratio_that_is_not_from_0_to_1_is_refused_with_its_name(value):
    with pytest.raises(LookoutError, match="LOOKOUT_TRACE_RATIO must be a number from 0 to 1; got"):
        trace_ratio({"LOOKOUT_TRACE_RATIO": value})


def results(*rows, **fields):
    """Return the fragment of region 1 in batch 9 with rows of (query, sign, reason, key, time_us)."""
    nothing = np.zeros(6)
    columns = [
        {"query": query, "sign": sign, "reason": reason, "key": key, "time_us": time_us, "key_hash": ord(key)}
        | {"bounds": nothing, "partner_hash": 0}
        for query, sign, reason, key, time_us in rows
    ]
    changes = pa.Table.from_pylist(columns, result_schema(EARTH))
    return Fragment("e", 9, 1, 2, changes, changes.slice(0, 0), counters={"elements": len(rows)}, **fields)


def test_a_trace_has_the_queries_with_tuples_due_to_its_element_and_no_others():
    shared = ANSWER_NUMBERS + 7
    fragment = results(
        (1, ENTERED, MOVED, "a", 5),
        (shared, STAYED, MOVED, "a", 5),
        (4, LEFT, HANDOFF, "a", 5),
        (5, ENTERED, MOVED, "a", 4),
        (6, STAYED, FOCUS_MOVED, "b", 5),
        (7, ENTERED, REGISTERED, "c", 5),
        (8, PLACED, MOVED, "d", 5),
        (9, ENTERED, MOVED, "g", 5),
        shared={shared: (2, 3)},
        aggregates=(9,),
    )
    found = Traces(1).sampled_results(fragment)
    assert [(one.key, one.queries) for one in found] == [("a", (1, 2, 3, 4)), ("a", (5,))]
    assert Traces().sampled_results(fragment) == []


class Client:
    """A connection whose frames are sent when the test says so."""

    def __init__(self):
        self.then = []

    def when_sent(self, tell):
        self.then.append(tell)


def test_regions_hubs_and_connections_continue_the_trace_that_others_have_begun():
    kept = InMemorySpanExporter()
    exporting = Exporting(kept, {})
    traces, began_ns = Traces(1, exporting), time.time_ns()
    fragment, table = (
        results((1, ENTERED, MOVED, "a", 5)),
        elements(1, 5).set_column(1, "key_hash", pa.array([ord("a")])),
    )
    engine = EngineTraces(traces)
    engine.evaluate([RegionInput(1, {}, {"arrivals": table})], [fragment], began_ns)
    engine.publish([fragment], began_ns)
    hub, client, other = (
        HubTraces(traces, Batch("e", 9, (fragment, replace(fragment, region=0))), "hub"),
        Client(),
        Client(),
    )
    hub.delivered(client, [AnswerSubscription(client, 1, "json"), AnswerSubscription(client, 2, "json")])
    hub.delivered(other, [AnswerSubscription(other, 2, "json")])
    hub.distributed(began_ns)
    assert other.then == []
    for tell in client.then:
        tell()
    exporting.flush()
    spans = kept.get_finished_spans()
    assert [span.name for span in spans] == ["engine.evaluate", "engine.publish", "web.distribute", "web.send"]
    (number,) = {one.number for one in traces.sampled([table])}
    sent = span_id(number, Span("engine.send", 9, 1))
    assert [span.parent.span_id for span in spans] == [sent, *(span.context.span_id for span in spans[:-1])]
    assert {span.context.trace_id for span in spans} == {trace_id(number)}
    assert spans[0].attributes["lookout.tuples"] == 1
    assert [span.attributes.get("lookout.queries") for span in spans] == [None, (1,), (1,), (1,)]

"""Send spans to a collector with OpenTelemetry, and never wait for it."""

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from streaming.traces import Span, span_id, trace_id

logger = logging.getLogger(__name__)

# As many spans of a process wait at most for a collector, 1 kB each.
MOST_WAITING = 8_192


class GivenIds(IdGenerator, threading.local):
    """Gives the next span of this thread the ids in `trace` and `span`."""

    trace = span = 0

    def generate_trace_id(self) -> int:
        """Return the id of a trace, for a span without a parent."""
        return self.trace

    def generate_span_id(self) -> int:
        """Return the id of a span."""
        return self.span


class Losses:
    """Counts the spans that wait, and those that are lost; logs once that they are, and how many once that is over."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting = self.lost = 0

    def has_room(self) -> bool:
        """Count a span that is to wait; return whether there is room for it, else it is lost."""
        with self._lock:
            room = self.waiting < MOST_WAITING
            self.waiting += room
        if not room:
            self._lose(1)
        return room

    def sent(self, count: int, arrived: bool) -> None:
        """Count spans that no longer wait: the collector has taken them, or they are lost."""
        with self._lock:
            self.waiting -= count
            lost = self.lost
            self.lost = 0 if arrived else lost
        if not arrived:
            self._lose(count)
        elif lost:
            logger.warning("the collector of traces takes spans again: %d were lost", lost)

    def _lose(self, count: int) -> None:
        with self._lock:
            first, self.lost = not self.lost, self.lost + count
        if first:
            logger.warning("spans of traces are lost: their collector is away, or too slow; they are counted")


class CountedExporter(SpanExporter):
    """Passes spans on to another exporter, and counts what is lost."""

    def __init__(self, exporter: SpanExporter, losses: Losses) -> None:
        self._exporter, self._losses = exporter, losses

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; the thread of the batches calls it, and it may take seconds."""
        result = SpanExportResult.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            self._losses.sent(len(spans), result is SpanExportResult.SUCCESS)
        return result

    def shutdown(self) -> None:
        """End the other exporter."""
        self._exporter.shutdown()


class BoundedBatches(BatchSpanProcessor):
    """Keeps spans for a thread that sends them; a span for which there is no room is lost."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._losses = Losses()
        super().__init__(CountedExporter(exporter, self._losses), max_queue_size=MOST_WAITING)

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span."""
        if self._losses.has_room():
            super().on_end(span)


class Exporting:
    """Makes spans with given ids and times.

    Parameters
    ----------
    exporter : SpanExporter
    resource : mapping of str to str
        What describes the program that makes them.
    """

    def __init__(self, exporter: SpanExporter, resource: Mapping[str, str]) -> None:
        self._ids = GivenIds()
        described = Resource.create(dict(resource))
        # A program that ends does not wait for the collector. The last spans are lost then.
        provider = TracerProvider(ALWAYS_ON, described, shutdown_on_exit=False, id_generator=self._ids)
        self._batches = BoundedBatches(exporter)
        provider.add_span_processor(self._batches)
        self._tracer = provider.get_tracer("lookout")

    @classmethod
    def to_collector(cls, program: str, space: str) -> "Exporting":
        """Return what sends spans to the collector that OpenTelemetry's own environment variables name."""
        # It would log every attempt; `Losses` says it once.
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        resource = {"service.name": f"lookout-{program}"} | ({"lookout.space": space} if space else {})
        return cls(OTLPSpanExporter(), resource)

    def flush(self) -> None:
        """Send all spans that wait; it may take as long as the collector does."""
        self._batches.force_flush()

    def record(
        self, number: int, span: Span, before: Span | None, times_ns: tuple[int, int], attributes: Mapping[str, Any]
    ) -> None:
        """Make a span in the trace of the element with a number."""
        self._ids.trace, self._ids.span = trace_id(number), span_id(number, span)
        context = Context()
        if before is not None:
            flags = TraceFlags(TraceFlags.SAMPLED)
            parent = SpanContext(self._ids.trace, span_id(number, before), is_remote=True, trace_flags=flags)
            context = set_span_in_context(NonRecordingSpan(parent), context)
        made = self._tracer.start_span(span.name, context, attributes=attributes, start_time=times_ns[0])
        made.end(times_ns[1])

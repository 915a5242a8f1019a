"""The spans of a batch: of home servers, of the exchange, of regional servers, and of the results."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from streaming.engine.batch import ELEMENTS
from streaming.engine.ways import WAYS
from streaming.results import Fragment
from streaming.servers.way import RegionInput
from streaming.traces import PUBLISH, WRITE, Span, Traces

HOME, SEND, EVALUATE = "engine.home", "engine.send", "engine.evaluate"


class EngineTraces:
    """Records what the stages of a batch do with sampled elements. Each method is called when its stage ends.

    Parameters
    ----------
    traces : Traces
    """

    def __init__(self, traces: Traces) -> None:
        self._traces = traces

    def home(self, batch: int, partition: int, inputs: Iterable[RegionInput], began_ns: int) -> None:
        """Record that a home server has read elements; one that it drops because it is stale has no such span."""
        if self._traces.on:
            elements = self._traces.sampled(table for made in inputs for table in _arriving(made))
            self._traces.record(Span(HOME, batch), WRITE, elements, began_ns, partition=partition)

    def send(self, batch: int, inputs: Iterable[RegionInput], began_ns: int) -> None:
        """Record that elements were sent to regions."""
        for made in inputs if self._traces.on else ():
            elements = self._traces.sampled(_arriving(made))
            self._traces.record(Span(SEND, batch, made.region), Span(HOME, batch), elements, began_ns)

    def evaluate(self, inputs: Iterable[RegionInput], fragments: Sequence[Fragment], began_ns: int) -> None:
        """Record that a region has evaluated its inputs, and perhaps the assembler the parts of all regions."""
        if not self._traces.on:
            return
        region, *assembled = fragments
        elements = self._traces.sampled(table for sent in inputs for table in _arriving(sent))
        span, before = Span(EVALUATE, region.batch, region.region), Span(SEND, region.batch, region.region)
        told = {"elements": region.counters["elements"], "tuples": region.changes.num_rows}
        self._traces.record(span, before, elements, began_ns, **told)
        for fragment in assembled:  # which regions have sent the elements is not known here
            span, before = Span(EVALUATE, fragment.batch, fragment.region), Span(HOME, fragment.batch)
            self._traces.record(span, before, self._traces.sampled_results(fragment), began_ns)

    def publish(self, fragments: Iterable[Fragment], began_ns: int) -> None:
        """Record that results were published: of each element those that are due to it."""
        for fragment in fragments if self._traces.on else ():
            at = fragment.batch, fragment.region
            elements = self._traces.sampled_results(fragment)
            self._traces.record(Span(PUBLISH, *at), Span(EVALUATE, *at), elements, began_ns)


def _arriving(sent: RegionInput) -> list[pa.Table]:
    """Return the tables with elements of the batch; reports that home servers release came in batches before."""
    names = (*ELEMENTS, *(name for way in WAYS for name in way.element_tables))
    return [sent.tables[name] for name in names if name in sent.tables]

"""OpenTelemetry traces: the way of some elements through Lookout, from a feed's bytes to the frames of websockets.

Nothing is added to an element. From the hash of its key and its time, each stage computes whether it is sampled, to
which trace it belongs, and which number the span of the stage before has. So all stages agree without being told. The
hash of a key contains the stream.
"""

import time
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.results import ANSWER_NUMBERS, FILTERED, HANDOFF, MOVED, PLACED, QUIET_HANDOFF, Fragment

# A span names as many queries.
MOST_QUERIES = 10
# Tuples for these reasons are due to the newest element of their object; for others, the element is an old one.
OWN_REASONS = (MOVED, FILTERED, HANDOFF, QUIET_HANDOFF)
_EVERY = 2**64


class Sampled(NamedTuple):
    """A sampled element: the number that its trace is made of, its object, and queries with tuples about it."""

    number: int
    key: str
    queries: tuple[int, ...] = ()


class Span(NamedTuple):
    """What identifies a span in a trace: its name, and where it was made, as far as the name is not enough."""

    name: str
    batch: int = -1
    region: int = -1
    place: str = ""


RECEIVE, WRITE = Span("gateway.receive"), Span("gateway.write")
# The name of the last span of the engine.
PUBLISH = "engine.publish"


def numbers(key_hash: np.ndarray, time_us: np.ndarray) -> np.ndarray:
    """Return the numbers of elements, uint64 of shape (N,), from int64 columns; they are spread evenly.

    References
    ----------
    G. L. Steele, D. Lea and C. H. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014: SplitMix64.

    Examples
    --------
    >>> made = numbers(np.arange(100_000), np.zeros(100_000, dtype=np.int64))
    >>> round(float(np.mean(made < 2**64 // 4)), 2)
    0.25
    """
    return _mixed(_mixed(key_hash.view(np.uint64)) ^ time_us.view(np.uint64))


def trace_id(number: int) -> int:
    """Return the id of the trace of an element, which has 128 bits.

    The lower 64 bits are its number, so OpenTelemetry's own sampler by ratio (`TraceIdRatioBased`) chooses the same.
    """
    return int.from_bytes(blake2b(number.to_bytes(8, "big"), digest_size=8).digest(), "big") << 64 | number


def span_id(number: int, span: Span) -> int:
    """Return the id of a span in the trace of an element, which has 64 bits.

    Examples
    --------
    >>> span_id(7, Span("engine.send", 3, 0)) == span_id(7, Span("engine.send", 3, 1))
    False
    """
    text = f"{number} {' '.join(map(str, span))}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")


class Traces:
    """Records spans of sampled elements; with ratio 0, it returns at once.

    Parameters
    ----------
    ratio : float
        Which part of the elements is sampled, from 0 to 1.
    tracer : Tracer, optional
        Where spans go, such as `streaming.trace_export.Exporting`; needed if `ratio` is above 0.
    """

    def __init__(self, ratio: float = 0.0, tracer: Any = None) -> None:
        self.on = ratio > 0
        self._most, self._tracer = np.uint64(min(round(ratio * _EVERY), _EVERY - 1)), tracer

    def sampled(self, tables: Iterable[pa.Table]) -> list[Sampled]:
        """Return the sampled ones of elements, each once: of rows with `key`, `key_hash` and `time_us`."""
        found: dict[int, Sampled] = {}
        for table in tables if self.on else ():
            number, rows = self._chosen(table)
            for one, key in zip(number.tolist(), table["key"].take(rows).to_pylist(), strict=True):
                found[one] = Sampled(one, key)
        return list(found.values())

    def sampled_results(self, fragment: Fragment) -> list[Sampled]:
        """Return the sampled elements that are the cause of the changes in a fragment, with their queries.

        What waits for event time (windows, encounters) is told of elements that came in batches before.
        """
        if not self.on or not fragment.changes.num_rows:
            return []
        at_once = pc.and_(*(pc.is_null(fragment.changes[name]) for name in ("window_us", "since_us")))
        changes = fragment.changes.filter(at_once)
        changes = changes.select(["query", "sign", "reason", "key", "key_hash", "time_us"])
        of_elements = pc.and_(
            pc.is_in(changes["reason"], pa.array(OWN_REASONS, pa.int8())), pc.not_equal(changes["sign"], PLACED)
        )
        if fragment.aggregates:  # their tuples are about groups
            groups = pc.is_in(changes["query"], pa.array(fragment.aggregates, pa.int64()))
            of_elements = pc.and_(of_elements, pc.invert(groups))
        changes = changes.filter(of_elements)
        number, rows = self._chosen(changes)
        found: dict[int, Sampled] = {}
        chosen = changes.take(rows)
        for one, key, query in zip(
            number.tolist(), chosen["key"].to_pylist(), chosen["query"].to_pylist(), strict=True
        ):
            queries = fragment.shared.get(query, ()) if query >= ANSWER_NUMBERS else (query,)
            known = found.get(one, Sampled(one, key))
            found[one] = known._replace(queries=known.queries + queries)
        return list(found.values())

    def record(
        self, span: Span, before: Span | None, elements: Sequence[Sampled], began_ns: int, /, **told: Any
    ) -> None:
        """Record that a stage has worked on some elements, from `began_ns` until now.

        Parameters
        ----------
        span, before : Span
            The span of the stage, and that of the stage before; None for the first one.
        elements : sequence of Sampled
        began_ns : int
            In nanoseconds since 1970 UTC.
        **told : str, int or float
            More attributes.
        """
        now_ns = time.time_ns()
        for element in elements:
            attributes = {f"lookout.{name}": value for name, value in told.items()} | {"lookout.object": element.key}
            if span.batch >= 0:
                attributes["lookout.batch"] = span.batch
            if span.region >= 0:
                attributes["lookout.region"] = span.region
            if element.queries:
                attributes["lookout.queries"] = element.queries[:MOST_QUERIES]
            self._tracer.record(element.number, span, before, (began_ns, now_ns), attributes)

    def _chosen(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the sampled rows of a table, and their positions."""
        number = numbers(table["key_hash"].to_numpy(), table["time_us"].to_numpy())
        rows = np.flatnonzero(number <= self._most)
        return number[rows], rows


OFF = Traces()


def _mixed(number: np.ndarray) -> np.ndarray:
    """Return 64-bit numbers mixed so that every bit depends on every other."""
    number = number + np.uint64(0x9E3779B97F4A7C15)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))

"""Try an unsaved stream for a short time: ``python -m streaming.gateway.trial``, with a job as JSON on standard input.

It runs the transport and the decoder as the gateway does, stores nothing, and prints the result as JSON: the first
elements, the malformed input, and the error if there is one.
"""

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from streaming.confined import confine, memory_errors
from streaming.decoders.csv_proposal import MOST_BYTES, proposed
from streaming.elements import bounds_of
from streaming.errors import InvalidOptions, LookoutError
from streaming.gateway.access import FeedAccess
from streaming.gateway.clock import Clock
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition, check_definition
from streaming.gateway.health import StreamHealth
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.transports.base import Chunk, Mark, Transport
from streaming.language import gettext, thousands
from streaming.spaces import Space, parse_space

ELEMENTS_SHOWN = 10
CSV = "csv"
_LOOK_S = 0.05
_MEMORY_BYTES = 2 << 30
_PROPERTIES_CHARACTERS = 1_000


class TrialQueue:
    """A queue that keeps the first `ELEMENTS_SHOWN` elements and only counts the others."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []
        self.rows = 0

    async def put(self, table: pa.Table, heard_us: int) -> None:
        """Keep elements until there are `ELEMENTS_SHOWN`, and count all."""
        if self.rows < ELEMENTS_SHOWN:
            self.tables.append(table.slice(0, ELEMENTS_SHOWN - self.rows))
        self.rows += table.num_rows

    def elements(self) -> list[dict[str, Any]]:
        """Return the kept elements as JSON objects."""
        return [element for table in self.tables for element in _elements(table)]


class Overheard:
    """A transport of which the first bytes are kept.

    Parameters
    ----------
    transport : Transport

    Attributes
    ----------
    beginning : bytes
        At most some more than `MOST_BYTES`, of the first document of the first sender.
    """

    def __init__(self, transport: Transport) -> None:
        self.live, self.replay, self.beginning = transport.live, transport.replay, b""
        self._transport, self._source = transport, ""

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield the transport's chunks."""
        keeps = not self.beginning
        async with aclosing(self._transport.chunks()) as chunks:
            async for chunk in chunks:
                self._source = self._source or chunk.source
                if keeps and chunk.source == self._source:
                    self.beginning += chunk.payload
                    keeps = chunk.mark is Mark.BYTES and len(self.beginning) < MOST_BYTES
                yield chunk


async def tried(definition: StreamDefinition, space: Space, access: FeedAccess, seconds: float) -> dict[str, Any]:
    """Run a stream until it has given `ELEMENTS_SHOWN` elements, ends, breaks, or the time is over.

    Returns
    -------
    dict
        The document of its health (see `StreamHealth.document`), ``shown``: the first elements, and ``proposed``: for
        CSV, the decoder's options that read more of the first rows, or None.

    Raises
    ------
    InvalidOptions
        When the definition breaks a rule.
    """
    check_definition(definition, {space.name: space}, access)
    gathered, health = TrialQueue(), StreamHealth(space.name)
    outlet = Outlet(gathered, health, Clock(), GatewayConfig(access=access), space)
    stream = RunningStream(definition, outlet)
    stream.transport = overheard = Overheard(stream.transport)
    running = asyncio.create_task(stream.run())
    until_s = time.monotonic() + seconds
    while gathered.rows < ELEMENTS_SHOWN and not running.done() and time.monotonic() < until_s:
        if health.state in ("retrying", "failed"):
            break
        await asyncio.sleep(_LOOK_S)
    told = health.document()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    options = {name: value for name, value in definition.decoder.items() if name != "kind"}
    is_csv = definition.decoder["kind"] == CSV and overheard.beginning
    better = proposed(overheard.beginning, options, space) if is_csv else None
    return told | {"shown": gathered.elements(), "proposed": better}


def _elements(table: pa.Table) -> list[dict[str, Any]]:
    boxes = bounds_of(table["bounds"]).tolist()
    n = len(boxes[0]) // 2 if boxes else 0
    return [
        {"key": row["key"], "time_us": row["time_us"], "lo": box[:n], "hi": box[n:]}
        | {"properties": (row["properties"] or "{}")[:_PROPERTIES_CHARACTERS]}
        for row, box in zip(table.select(["key", "time_us", "properties"]).to_pylist(), boxes, strict=True)
    ]


def answer(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a job, or its error."""
    access = FeedAccess(Path(job["home"]), tuple(map(Path, job["folders"])), tuple(job["hosts"]))
    try:
        space = parse_space(job["space"])
        definition = StreamDefinition("test", space.name, job["transport"], job["decoder"])
        if definition.transport.get("kind") == "stdin":
            raise InvalidOptions("standard input is the gateway's; it cannot be tested here")
        with memory_errors():
            return asyncio.run(tried(definition, space, access, job["seconds"]))
    except LookoutError as error:
        return {"error": str(error), "shown": []}
    except MemoryError:
        return {
            "error": gettext("a test must do with %(memory_bytes)s bytes of memory; this one needs more")
            % {"memory_bytes": thousands(_MEMORY_BYTES)},
            "shown": [],
        }


def main() -> None:
    """Read a job from standard input, and print its result as JSON."""
    logging.disable(logging.CRITICAL)
    job = orjson.loads(sys.stdin.buffer.read())
    confine(_MEMORY_BYTES)
    print(orjson.dumps(answer(job)).decode())


if __name__ == "__main__":
    main()

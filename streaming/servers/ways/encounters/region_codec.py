"""How the state of a region's encounters is stored: valid reports as sorted runs, waiting ones batch by batch."""

import pyarrow as pa

from streaming.servers.region import objects
from streaming.servers.region.objects import ObjectTable
from streaming.servers.report_queue import ReportQueue
from streaming.servers.runs_codec import heads_of, parts_of, table_of
from streaming.servers.ways.encounters.region import Encounters, Followed, queued_schema
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, array_of, head_of, with_head


def region_encounter_codec(space: Space) -> Codec:
    """Return the codec of `Encounters` in a space."""
    columns = objects.no_columns(space)

    def decode(parts: Parts) -> Encounters:
        table, *near = parts[HEAD].tables()
        head, queries = head_of(table), {}
        for (query, queue), pairs in zip(head["queues"], near, strict=True):
            queries[query] = Followed(
                ObjectTable(table_of(_valid(query), columns, head, parts)),
                ReportQueue.of_head(queued_schema(space), _queue(query), queue, parts, "start_us"),
                array_of(pairs["near"]).reshape(-1, 2),
            )
        return Encounters(queries)

    return Codec(lambda batch: Encounters(), _encode, decode)


def _encode(state: Encounters) -> Parts:
    tables = {_valid(query): known.valid.table for query, known in state.queries.items()}
    head = heads_of(tables) | {"queues": [[query, known.queue.head()] for query, known in state.queries.items()]}
    near = [pa.table({"near": known.near.ravel()}) for known in state.queries.values()]
    parts = parts_of(tables)
    for query, known in state.queries.items():
        parts |= known.queue.parts(_queue(query))
    return {HEAD: Tables([with_head(NOTHING, head), *near])} | parts


def _valid(query: int) -> str:
    return f"valid-{query}"


def _queue(query: int) -> str:
    return f"waiting-{query}"

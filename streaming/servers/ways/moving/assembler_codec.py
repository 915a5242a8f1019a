"""How the state of the engine's assembler is stored."""

import pyarrow as pa

from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.ways.moving.aggregation import Aggregation
from streaming.servers.ways.moving.assembler import AssemblerState
from streaming.servers.ways.moving.focals import Focals
from streaming.servers.ways.moving.nearest import Ranking
from streaming.spaces import Space
from streaming.state.codec import (
    HEAD,
    Codec,
    Parts,
    Tables,
    array_of,
    frame_of_table,
    head_of,
    table_of_frame,
    with_head,
)

# The columns of the tables of a `Ranking`: one has a row for each query, the other for each candidate.
RANKING_COLUMNS = ("query", "count", "members"), ("key", "distance")


def assembly_codec(space: Space) -> Codec:
    """Return the codec of `AssemblerState` in a space."""
    return Codec(lambda batch: AssemblerState.none(space), _encode, _decode)


def _encode(state: AssemblerState) -> Parts:
    groups = state.aggregation
    frames = (groups.parts, groups.told, groups.crossed)
    regions = [pa.table({"query": f.searching, "reach": f.reach}) for f in (state.focals, state.following)]
    elements = with_head(state.focals.elements, {"left_out": left_out_rows(state.left_out)})
    ranking = [pa.table({name: getattr(state.ranking, name) for name in names}) for names in RANKING_COLUMNS]
    return {HEAD: Tables([elements, *regions, *ranking, *map(table_of_frame, frames)])}


def _decode(parts: Parts) -> AssemblerState:
    elements, first, second, queries, candidates, *frames = parts[HEAD].tables()
    left_out = left_out_of_rows(head_of(elements)["left_out"])
    elements = elements.replace_schema_metadata(None)
    seen, following = (
        Focals(elements, array_of(table["query"]), array_of(table["reach"])) for table in (first, second)
    )
    tables = zip((queries, candidates), RANKING_COLUMNS, strict=True)
    ranking = Ranking(*(array_of(table[name]) for table, names in tables for name in names))
    aggregation = Aggregation(*map(frame_of_table, frames))
    return AssemblerState(seen, following, ranking, aggregation, left_out)

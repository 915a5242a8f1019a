"""How the state of the engine's assembler is stored."""

import pyarrow as pa

from streaming.servers.assembler.aggregation import Aggregation
from streaming.servers.assembler.nearest import Ranked
from streaming.servers.assembler.server import AssemblerState
from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.focals import Focals
from streaming.spaces import Space
from streaming.state.codec import (
    HEAD,
    Codec,
    array_of,
    arrays_of_table,
    frame_of_table,
    head_of,
    table_of_arrays,
    table_of_frame,
    with_head,
)


def assembly_codec(space: Space) -> Codec:
    """Return the codec of `AssemblerState` in a space."""
    return Codec(lambda: AssemblerState.none(space), _encode, _decode)


def _encode(state):
    groups = state.aggregation
    frames = (groups.parts, groups.told, groups.crossed)
    regions = [pa.table({"query": f.searching, "reach": f.reach}) for f in (state.focals, state.following)]
    elements = with_head(state.focals.elements, {"left_out": left_out_rows(state.left_out)})
    return {HEAD: [elements, *regions, table_of_arrays(state.ranked), *map(table_of_frame, frames)]}


def _decode(parts):
    elements, *regions = parts[HEAD][:3]
    ranked, *frames = parts[HEAD][3:]
    left_out = left_out_of_rows(head_of(elements)["left_out"])
    elements = elements.replace_schema_metadata(None)
    seen, following = (Focals(elements, array_of(table["query"]), array_of(table["reach"])) for table in regions)
    aggregation = Aggregation(*map(frame_of_table, frames))
    return AssemblerState(seen, following, arrays_of_table(Ranked, ranked), aggregation, left_out)

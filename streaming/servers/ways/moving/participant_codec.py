"""How the members of aggregates in a region are stored, and what a participating server sends to the assembler."""

import polars as pl
import pyarrow as pa

from streaming.operators.aggregates import MEMBERS
from streaming.servers.ways.moving.partial import Candidates, Partial
from streaming.state.codec import (
    HEAD,
    Codec,
    Parts,
    Tables,
    array_of,
    arrays_of_table,
    frame_of_table,
    table_of_arrays,
    table_of_frame,
)


def _encode_partial(partial: Partial) -> Parts:
    found = [table_of_arrays(part) for part in (partial.removed, partial.added)]
    named = [pa.table({name: getattr(partial, name)}) for name in ("moved", "altered", "lacking", "renewed")]
    return {HEAD: Tables([*found, *named, table_of_frame(partial.parts)])}


def _decode_partial(parts: Parts) -> Partial:
    removed, added, moved, altered, lacking, renewed, groups = parts[HEAD].tables()
    gone, came = (arrays_of_table(Candidates, table) for table in (removed, added))
    # Arrow packs booleans into bits, so numpy needs a copy of them.
    mask = moved["moved"].combine_chunks().to_numpy(zero_copy_only=False)
    keys = array_of(lacking["lacking"]), array_of(renewed["renewed"])
    return Partial(gone, came, mask, array_of(altered["altered"]), frame_of_table(groups), *keys)


MEMBERS_OF_AGGREGATES = Codec(
    lambda batch: pl.DataFrame(schema=MEMBERS),
    lambda members: {HEAD: Tables([table_of_frame(members)])},
    lambda parts: frame_of_table(parts[HEAD].tables()[0]),
)
PARTIAL = Codec(lambda batch: None, _encode_partial, _decode_partial)

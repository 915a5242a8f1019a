"""How the state of a regional server, and of a region's joins with streams, is stored.

The head has the hot columns and the answers. Each segment of cold columns is a part of its own.
"""

from dataclasses import fields

import pyarrow as pa

from streaming.elements import bounds_array, bounds_of
from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.region.objects import Cold, Objects, Segment
from streaming.servers.region.state import Region
from streaming.spaces import Space
from streaming.state.codec import HEAD, Codec, array_of, head_of, with_head

PAIR_COLUMNS = ("pair_key", "pair_answer", "pair_partner")


def region_codec(space: Space) -> Codec:
    """Return the codec of `Region` in a space."""
    return Codec(lambda: Region.empty(space), _encode, _decode)


def _encode(region):
    columns = {field.name: getattr(region.objects, field.name) for field in fields(Objects)}
    columns["bounds"] = bounds_array(columns["bounds"])
    head = {
        "now_us": region.now_us,
        "following": region.cold.following,
        "segments": [segment.number for segment in region.cold.segments],
        "left_out": left_out_rows(region.left_out),
    }
    pairs = pa.table({name: getattr(region, name) for name in PAIR_COLUMNS})
    segments = {_part(segment.number): [segment.table] for segment in region.cold.segments}
    return {HEAD: [with_head(pa.table(columns), head), pairs]} | segments


def _decode(parts):
    table, pairs = parts[HEAD]
    head = head_of(table)
    columns = [bounds_of(table[f.name]) if f.name == "bounds" else array_of(table[f.name]) for f in fields(Objects)]
    segments = tuple(Segment(number, parts[_part(number)][0]) for number in head["segments"])
    return Region(
        Objects(*columns),
        Cold(segments, head["following"]),
        *(array_of(pairs[name]) for name in PAIR_COLUMNS),
        head["now_us"],
        left_out_of_rows(head["left_out"]),
    )


def _part(number):
    return f"segment-{number}"

"""How the state of a regional server is stored: objects and members of answers as sorted runs."""

from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.region import member_table, objects
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import ObjectTable
from streaming.servers.region.state import Region
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


def region_codec(space: Space) -> Codec:
    """Return the codec of `Region` in a space."""
    columns = objects.no_columns(space)

    def decode(parts: Parts) -> Region:
        (table,) = parts[HEAD].tables()
        head = head_of(table)
        known = ObjectTable(table_of("objects", columns, head, parts))
        pairs = MemberTable(table_of("pairs", member_table.no_columns(), head, parts))
        return Region(known, pairs, head["now_us"], left_out_of_rows(head["left_out"]))

    return Codec(lambda batch: Region.empty(space, first_number(batch)), _encode, decode)


def _encode(region: Region) -> Parts:
    tables = {"objects": region.objects.table, "pairs": region.pairs.table}
    head = heads_of(tables) | {"now_us": region.now_us, "left_out": left_out_rows(region.left_out)}
    return {HEAD: Tables([with_head(NOTHING, head)])} | parts_of(tables)

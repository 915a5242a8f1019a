"""How the state of a home server is stored: its entries as sorted runs, and what ways of evaluation keep there."""

from collections.abc import Sequence

import pyarrow as pa

from streaming.servers.home import Home, no_columns
from streaming.servers.home_turn import HomePart
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, StatePart, Tables, head_of, with_head

ENTRIES = "entries"


def home_codec(space: Space, kept: Sequence[HomePart]) -> Codec:
    """Return the codec of `Home` in a space, given how the ways of evaluation keep parts of it, in their order."""

    def encode(home: Home) -> Parts:
        encoded = [part.encode(home.parts[part.name]) for part in kept if part.name in home.parts]
        tables = {ENTRIES: home.entries}
        head = {"now_us": home.now_us, "forgotten_us": home.forgotten_us}
        parts: dict[str, StatePart] = {}
        rows: list[pa.Table] = []
        for one in encoded:
            tables |= one.tables
            head |= one.head
            parts |= one.parts
            rows += one.rows
        return {HEAD: Tables([with_head(NOTHING, heads_of(tables) | head), *rows])} | parts_of(tables) | parts

    def decode(parts: Parts) -> Home:
        table, *rows = parts[HEAD].tables()
        head, left = head_of(table), iter(rows)
        found = {part.name: part.decode(head, parts, left, space) for part in kept if part.name in head}
        return Home(table_of(ENTRIES, no_columns(), head, parts), head["now_us"], head["forgotten_us"], found)

    return Codec(lambda batch: Home.empty(first_number(batch)), encode, decode)

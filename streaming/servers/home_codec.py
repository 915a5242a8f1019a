"""How the state of a home server is stored: its entries as sorted runs."""

from streaming.servers.home import Home, no_columns
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.state.codec import HEAD, NOTHING, Codec, Tables, head_of, with_head


def _encode(home):
    tables = {"entries": home.entries}
    head = heads_of(tables) | {"now_us": home.now_us, "forgotten_us": home.forgotten_us}
    return {HEAD: Tables([with_head(NOTHING, head)])} | parts_of(tables)


def _decode(parts):
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    return Home(table_of("entries", no_columns(), head, parts), head["now_us"], head["forgotten_us"])


HOME = Codec(lambda batch: Home.empty(first_number(batch)), _encode, _decode)

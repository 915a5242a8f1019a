"""How the state of a home server is stored: its entries as sorted runs."""

from streaming.operators.watermarks import Progress
from streaming.servers.home import Home, no_columns
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.state.codec import HEAD, NOTHING, Codec, Tables, head_of, with_head


def _encode(home):
    tables = {"entries": home.entries}
    progress = [[stream, *told] for stream, told in home.progress.items()]
    head = heads_of(tables) | {"now_us": home.now_us, "forgotten_us": home.forgotten_us, "progress": progress}
    return {HEAD: Tables([with_head(NOTHING, head)])} | parts_of(tables)


def _decode(parts):
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    progress = {stream: Progress(*told) for stream, *told in head.get("progress", ())}
    return Home(table_of("entries", no_columns(), head, parts), head["now_us"], head["forgotten_us"], progress)


HOME = Codec(lambda batch: Home.empty(first_number(batch)), _encode, _decode)

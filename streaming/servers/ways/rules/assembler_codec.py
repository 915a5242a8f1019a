"""How what the assembler knows of rules is stored."""

import numpy as np

from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.servers.ways.rules.changes import PARTNERS
from streaming.servers.ways.rules.entries import BEGINNING, ENTRY
from streaming.servers.ways.rules.numbers import Numbers
from streaming.servers.ways.rules.silences import SilentFeed
from streaming.servers.ways.rules.state import RuleState
from streaming.spaces import Space
from streaming.state.codec import HEAD, Codec, Parts, Tables, frame_of_table, head_of, table_of_frame, with_head

_COLUMNS = {"entries": ENTRY, "beginnings": BEGINNING, "partners": PARTNERS}


def rules_codec(space: Space) -> Codec:
    """Return the codec of `RuleState` in a space."""
    return Codec(lambda batch: RuleState.empty(space, first_number(batch)), _encode, _decode)


def _encode(state: RuleState) -> Parts:
    tables = {name: getattr(state, name) for name in _COLUMNS}
    head = {
        "tables": heads_of(tables),
        "numbers": state.numbers.document(),
        "feeds": [[rule, feed.document()] for rule, feed in state.feeds.items()],
        "stopped": state.stopped.tolist(),
        "now_us": state.now_us,
        "decided_us": state.decided_us,
        "left_out": left_out_rows(state.left_out),
    }
    frames = [table_of_frame(frame) for frame in (state.numbers.measures, state.numbers.members)]
    return {HEAD: Tables([with_head(state.over, head), state.lasting, *frames])} | parts_of(tables)


def _decode(parts: Parts) -> RuleState:
    over, lasting, *frames = parts[HEAD].tables()
    head = head_of(over)
    tables = {name: table_of(name, like, head["tables"], parts) for name, like in _COLUMNS.items()}
    return RuleState(
        tables["entries"],
        tables["beginnings"],
        tables["partners"],
        over,
        lasting,
        Numbers.of(head["numbers"], *map(frame_of_table, frames)),
        {rule: SilentFeed.of(feed) for rule, feed in head["feeds"]},
        np.array(head["stopped"], dtype=np.int64),
        head["now_us"],
        head["decided_us"],
        left_out_of_rows(head["left_out"]),
    )

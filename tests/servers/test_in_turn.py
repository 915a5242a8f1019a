"""What waits for its turn does not cost more with every micro-batch in which it waits."""

import pyarrow as pa

from streaming.results import result_schema
from streaming.servers.answers.in_turn import in_turn
from streaming.spaces import EARTH


def test_what_is_told_and_what_waits_is_in_one_piece_however_often_it_came_back():
    nothing = result_schema(EARTH).empty_table()
    now = waiting = nothing
    for _ in range(50):
        now, waiting = in_turn(pa.concat_tables([waiting, nothing, nothing]))
    assert max(column.num_chunks for table in (now, waiting) for column in table.columns) <= 1

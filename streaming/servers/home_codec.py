"""How the state of a home server is stored. A table without the column `copies` has no copies."""

import numpy as np
import pyarrow as pa

from streaming.servers.home import COLUMNS, Home
from streaming.state.codec import HEAD, Codec, array_of, head_of, with_head


def _encode(home):
    columns = {name: getattr(home, name) for name in COLUMNS if name != "copies" or home.copies.any()}
    return {HEAD: [with_head(pa.table(columns), {"now_us": home.now_us, "forgotten_us": home.forgotten_us})]}


def _decode(parts):
    (table,) = parts[HEAD]
    none = np.zeros(table.num_rows, dtype=np.int64)
    columns = (array_of(table[name]) if name in table.column_names else none for name in COLUMNS)
    return Home(*columns, **head_of(table))


HOME = Codec(Home.empty, _encode, _decode)

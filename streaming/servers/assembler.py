"""The assembler: nets what several regions say of one query in one micro-batch.

References
----------
PLACE* (2007), section 3: the assembler merges the partial answers of the participating servers, and an object's handoff
between servers is no change of the answer.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.results import ENTERED, HANDOFF, MOVED, STAYED, Fragment


def net(fragments: Sequence[Fragment]) -> pa.Table:
    """Return the result tuples of one micro-batch, ordered by query, ``-`` before ``~`` before ``+``.

    Parameters
    ----------
    fragments : sequence of Fragment
        Of all regions of one batch, one each.

    Returns
    -------
    pyarrow.Table
        With `results.result_schema`. An object that left one region and entered another one's part of the same answer
        is ``~``; one that left a region's part for good is ``-`` with the reason ``moved``.
    """
    table = pa.concat_tables([fragment.changes for fragment in fragments])
    reason = table["reason"].to_numpy()
    handoff = reason == HANDOFF
    if handoff.any():
        table = _settle(table, reason, handoff)
    return table.take(pc.sort_indices(table, [("query", "ascending"), ("sign", "ascending")]))


def _settle(table, reason, handoff):
    """Pair each handoff with the entry elsewhere, if there is one."""
    sign = table["sign"].to_numpy().copy()
    concerned = np.flatnonzero(handoff | (sign == ENTERED))
    names = np.stack([table[name].to_numpy()[concerned] for name in ("query", "key_hash", "partner_hash")])
    pair = np.full(len(sign), -1, dtype=np.int64)
    pair[concerned] = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
    entered = (sign == ENTERED) & np.isin(pair, pair[handoff])
    sign[entered] = STAYED
    reason = np.where(handoff | entered, MOVED, reason).astype(np.int8)
    keep = ~(handoff & np.isin(pair, pair[entered]))
    table = table.set_column(table.schema.get_field_index("sign"), table.schema.field("sign"), pa.array(sign))
    table = table.set_column(table.schema.get_field_index("reason"), table.schema.field("reason"), pa.array(reason))
    return table.filter(pa.array(keep))

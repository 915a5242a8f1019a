"""Tell one change after the other, since the result tuples of a micro-batch have no order."""

import numpy as np
import pyarrow as pa

from streaming.operators.runs import first_of_runs, place_in_runs
from streaming.results import LEFT
from streaming.servers.answers.names import names_of


def in_turn(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the tuples that can be told now, and those that have to wait for the next micro-batch.

    Of a query and an object, an entry and an exit behind it cannot be told together; an exit comes before an entry.

    Parameters
    ----------
    rows : pyarrow.Table
        With `results.result_schema`; those of a query and an object in the order in which they happened.

    Returns
    -------
    now, waiting : pyarrow.Table
        Each in one piece: what waits comes back with more behind it in every micro-batch, and would get more and more.
    """
    name = names_of(rows["query"].to_numpy(), rows["key_hash"].to_numpy())
    order = np.argsort(name, kind="stable")
    first = first_of_runs(name[order])
    opening = rows["sign"].to_numpy()[order][np.flatnonzero(first)][np.cumsum(first) - 1] if len(order) else order
    now = np.empty(len(order), dtype=bool)
    now[order] = place_in_runs(name[order]) < np.where(opening == LEFT, 2, 1)
    return rows.filter(pa.array(now)).combine_chunks(), rows.filter(pa.array(~now)).combine_chunks()

"""Spans that follow each other without a break are one encounter."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.operators.runs import last_of_runs


def joined_spans(table: pa.Table, pair: np.ndarray) -> "JoinedSpans":
    """Join spans that follow each other without a break.

    Parameters
    ----------
    table : pyarrow.Table, N rows
        With `encounter_schema`, by pair and in the order of event time.
    pair : ndarray of int64, shape (N,)
        A number of the pair of each.
    """
    since_us, until_us = (table[name].to_numpy() for name in ("since_us", "until_us"))
    begins = np.ones(len(pair), dtype=bool)
    begins[1:] = (pair[1:] != pair[:-1]) | (since_us[1:] != until_us[:-1])
    number, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    last = last_of_runs(number)
    nearest = np.lexsort((np.arange(len(pair)), table["distance"].to_numpy(), number))[first]
    found = table.take(pa.array(nearest))
    for name, rows in (("since_us", first), ("until_us", last), ("reason", last)):
        found = with_column(found, name, table[name].to_numpy()[rows])
    return JoinedSpans(found, pair[first], table["told"].to_numpy()[first] == 1, nearest != first)


@dataclass(frozen=True)
class JoinedSpans:
    """Encounters of pairs, by pair and in the order of event time.

    `table` has `encounter_schema`; `told` says whose beginning was told, and `closer` who have come closer.
    """

    table: pa.Table
    pair: np.ndarray
    told: np.ndarray
    closer: np.ndarray


def with_column(table: pa.Table, name: str, column: np.ndarray) -> pa.Table:
    """Return a table with another column of the same name and type."""
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), pa.array(column, table.schema.field(at).type))

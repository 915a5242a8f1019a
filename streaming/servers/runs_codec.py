"""How a table of sorted runs is stored: each run as a part of its own, and how they make the table in a document."""

from collections.abc import Mapping
from typing import Any

from streaming.servers.sorted_runs import Column, Run, SortedRuns
from streaming.state.codec import Parts, StatePart

# A state never numbers so many runs in a batch.
NUMBERS_A_BATCH = 1 << 20


def first_number(batch: int) -> int:
    """Return the number of the first run of a table that begins anew before a batch; no former table had it."""
    return batch * NUMBERS_A_BATCH


def parts_of(tables: Mapping[str, SortedRuns]) -> dict[str, StatePart]:
    """Return the runs of tables as the parts of a state."""
    return {_part(name, run.number): run for name, table in tables.items() for run in table.parts}


def heads_of(tables: Mapping[str, SortedRuns]) -> dict[str, Any]:
    """Return what a document must keep of tables besides their runs."""
    return {name: table.head() for name, table in tables.items()}


def table_of(name: str, like: Mapping[str, Column], heads: Mapping[str, Any], parts: Parts) -> SortedRuns:
    """Return a table, given its columns without rows; the inverse of `parts_of` and `heads_of`."""

    def run(number: int) -> Run:
        part = parts[_part(name, number)]
        return part if isinstance(part, Run) else Run.of_tables(number, part.tables())

    return SortedRuns.of_head(like, heads[name], run)


def _part(name: str, number: int) -> str:
    return f"{name}-{number}"

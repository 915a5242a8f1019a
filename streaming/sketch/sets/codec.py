"""How sets are stored: each run as a part of its own, and everything else in the head."""

from dataclasses import asdict

import pyarrow as pa

from streaming.sketch.sets.sets import SetRun, Sets
from streaming.sketch.sets.settings import SetSettings
from streaming.state.codec import HEAD, NOTHING, Parts, StatePart, Tables, head_of, with_head


def encode(sets: Sets, name: str = "sets") -> dict[str, StatePart]:
    """Return the parts of sets: their head, and a part for each run, whose names begin with `name`."""
    head = {
        "settings": asdict(sets.settings),
        "runs": [run.number for run in sets.runs],
        "following": sets.following,
        "level": sets.level,
    }
    return {HEAD: Tables([with_head(NOTHING, head)])} | {f"{name}-{run.number}": run for run in sets.runs}


def decode(parts: Parts, name: str = "sets") -> Sets:
    """Return the sets of parts; the inverse of `encode`. Runs that are in memory are the very ones that are given."""
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    settings = SetSettings(**head["settings"] | {"features": tuple(head["settings"]["features"])})
    runs = tuple(_run(number, parts[f"{name}-{number}"]) for number in head["runs"])
    return Sets(settings, runs, head["following"], head["level"])


def _run(number: int, part: StatePart) -> SetRun:
    return part if isinstance(part, SetRun) else SetRun.of_tables(number, part.tables())


def partial_tables(sets: Sets) -> list[pa.Table]:
    """Return sets as tables, such as the part that a question chose; `partial_of` reads them."""
    return [table for part in encode(sets).values() for table in part.tables()]


def partial_of(tables: list[pa.Table]) -> Sets:
    """Return the sets of `partial_tables`."""
    numbers = head_of(tables[0])["runs"]
    runs = {f"sets-{number}": Tables(tables[1 + 3 * i : 4 + 3 * i]) for i, number in enumerate(numbers)}
    return decode({HEAD: Tables(tables[:1])} | runs)

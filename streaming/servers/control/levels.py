"""A mapping in levels, so that one more entry copies few of the others, in memory and on disk.

Each level is immutable and has a number. A change adds a small level at the end, which is merged with those before it
that are not `RATIO` times larger. A store writes a level once, under its number; see `streaming.engine.store`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

V = TypeVar("V")

# A level has at least this many times as many entries as the next.
RATIO = 32


@dataclass(frozen=True)
class Level(Generic[V]):
    """Entries by key, in the order in which they were put; None stands for an entry that was removed."""

    number: int
    entries: Mapping[int, V | None]


class Levels(Mapping[int, V]):
    """An immutable mapping that shares its levels with those from which it was made.

    Parameters
    ----------
    levels : sequence of Level
        An entry of a later level replaces that of an earlier one. Numbers ascend.

    Examples
    --------
    >>> levels = Levels().changed({1: "a", 2: "b"})
    >>> dict(levels.changed({1: "c", 2: None}))
    {1: 'c'}
    """

    def __init__(self, levels: Sequence[Level[V]] = ()) -> None:
        self.levels = tuple(levels)

    def __getitem__(self, key: int) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: int, default: Any = None) -> Any:
        """Return the value of a key, or `default`. Most keys that are asked for are new, so it raises nothing."""
        for level in reversed(self.levels):
            if key in level.entries:
                value = level.entries[key]
                return default if value is None else value
        return default

    def __iter__(self) -> Iterator[int]:
        """Yield the keys; those that were put last come last."""
        for place, level in enumerate(self.levels):
            later = [one.entries for one in self.levels[place + 1 :]]
            for key, value in level.entries.items():
                if value is not None and not any(key in entries for entries in later):
                    yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def changed(self, entries: Mapping[int, V | None]) -> "Levels[V]":
        """Return the mapping after some entries were put, in their order, and those with None were removed.

        The result is a function of this mapping and of the entries alone, its levels and their numbers included. So
        each process that applies the same changes has the same levels.
        """
        if not entries:
            return self
        levels = list(self.levels)
        number = levels[-1].number + 1 if levels else 0
        merged = dict(entries)
        while levels and len(levels[-1].entries) < RATIO * len(merged):
            merged = {key: value for key, value in levels.pop().entries.items() if key not in merged} | merged
        if not levels:  # there is nothing below that a removed entry could replace
            merged = {key: value for key, value in merged.items() if value is not None}
        return Levels([*levels, Level(number, merged)])

"""A mapping in levels, so that one more entry copies few of the others, in memory and on disk.

Each level is immutable and has a number. A change adds a small level at the end, which is merged with those before it
as `levelling` says. What later levels replace or remove stays where it is at first. When this is most of what the
levels have, each change removes it from one level, the one that was made first. So no change copies all entries. A
store writes a level once, under its number; see `streaming.engine.store`.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from streaming.operators import levelling

V = TypeVar("V")


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
        An entry of a later level replaces that of an earlier one. No two levels ever have the same number.

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
                if value is not None and not _mentioned(key, later):
                    yield key

    def __len__(self) -> int:
        return self._count

    @functools.cached_property
    def _count(self) -> int:
        return sum(1 for _ in self)

    def changed(self, entries: Mapping[int, V | None]) -> "Levels[V]":
        """Return the mapping after some entries were put, in their order, and those with None were removed.

        The result is a function of this mapping and of the entries alone, its levels and their numbers included. So
        each process that applies the same changes has the same levels.
        """
        if not entries:
            return self
        number = max((level.number for level in self.levels), default=-1) + 1
        stay = levelling.staying([*(len(level.entries) for level in self.levels), len(entries)])
        merged = dict(entries)
        for level in reversed(self.levels[stay:]):
            merged = _merged(level.entries, merged)
        levels = list(self.levels[:stay])
        levels.append(Level(number, _needed(merged, levels)))
        more = sum((value is not None) - (self.get(key) is not None) for key, value in entries.items())
        return _tidied(levels, len(self) + more)


def _tidied(levels: list[Level[V]], count: int) -> Levels[V]:
    """Return the mapping with some levels and so many keys; if most of it is no longer needed, tidy a level."""
    if sum(len(level.entries) for level in levels) > 2 * count + levelling.LARGEST:
        place = min(range(len(levels)), key=lambda place: levels[place].number)
        number = max(level.number for level in levels) + 1
        later = [level.entries for level in levels[place + 1 :]]
        current = {key: value for key, value in levels[place].entries.items() if not _mentioned(key, later)}
        first = place
        if place and len(levels[place - 1].entries) + len(current) <= levelling.LARGEST:
            first, current = place - 1, _merged(levels[place - 1].entries, current)
        levels[first : place + 1] = [Level(number, _needed(current, levels[:first]))]
    made = Levels(levels)
    made.__dict__["_count"] = count
    return made


def _merged(older: Mapping[int, V | None], newer: dict[int, V | None]) -> dict[int, V | None]:
    return {key: value for key, value in older.items() if key not in newer} | newer


def _needed(entries: Mapping[int, V | None], earlier: Sequence[Level[Any]]) -> dict[int, V | None]:
    """Return entries without the removal of what no earlier level has."""
    before = [level.entries for level in earlier]
    return {key: value for key, value in entries.items() if value is not None or _mentioned(key, before)}


def _mentioned(key: int, entries: Iterable[Mapping]) -> bool:
    return any(key in some for some in entries)

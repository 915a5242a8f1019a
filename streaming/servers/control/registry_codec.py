"""How the registry is stored: what is small as a JSON document, and each level of registrations as a part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from streaming.servers.control.levels import Level
from streaming.servers.control.registrations import Registration, level_of, level_table
from streaming.servers.control.registry import Registry
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, StatePart, Tables, head_of, with_head


def registry_codec(empty: Registry) -> Codec:
    """Return the codec of a space's registries, given the one with which it begins."""
    return Codec(lambda _: empty, _encode, lambda parts: restored(parts, empty))


def restored(parts: Parts, known: Registry) -> Registry:
    """Return the registry that has some parts. What `known`, another version of it, has in common, both share."""
    (table,) = parts[HEAD].tables()
    head, levels = head_of(table), {level.number: level for level in known.registrations.levels}
    return known.restored(head, [levels.get(number) or _level(number, parts, known) for number in head["levels"]])


@dataclass(frozen=True)
class _LevelPart:
    """A level of registrations as a part of the state."""

    level: Level[Registration]

    def tables(self) -> Sequence[pa.Table]:
        return [level_table(self.level)]


def _level(number: int, parts: Mapping[str, StatePart], known: Registry) -> Level[Registration]:
    (table,) = parts[_part(number)].tables()
    return level_of(number, table, known.space)


def _encode(registry: Registry) -> Parts:
    levels = {_part(level.number): _LevelPart(level) for level in registry.registrations.levels}
    return {HEAD: Tables([with_head(NOTHING, registry.head())])} | levels


def _part(number: int) -> str:
    return f"level-{number}"

"""Control entries as one process reads them: their plans are parsed together, and once."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from streaming.servers.control.registrations import ParsedPlan, parsed_together
from streaming.spaces import Space

Entry = Mapping[str, Any]


class ControlEntries:
    """Some control entries of a space, in their order; see `logs.control_entry`.

    Parameters
    ----------
    entries : sequence of mapping
    space : Space
    """

    def __init__(self, entries: Sequence[Entry], space: Space) -> None:
        self.entries, self.space = entries, space

    @classmethod
    def of(cls, entries: "Sequence[Entry] | ControlEntries", space: Space) -> "ControlEntries":
        """Return the entries as they are, if they are such already."""
        return entries if isinstance(entries, ControlEntries) else cls(entries, space)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ControlEntries) and self.entries == other.entries

    __hash__ = None  # type: ignore[assignment]

    @functools.cached_property
    def plans(self) -> Mapping[int, ParsedPlan | Exception]:
        """The plan of each entry that registers a query, or what is wrong with it, by the entry's position."""
        rows = [row for row, entry in enumerate(self.entries) if entry.get("op") == "register"]
        plans = parsed_together([self.entries[row].get("plan") for row in rows], self.space)
        return dict(zip(rows, plans, strict=True))

    def first(self, count: int) -> "ControlEntries":
        """Return the first entries; plans that are parsed already are not parsed again."""
        first = ControlEntries(self.entries[:count], self.space)
        if "plans" in self.__dict__:
            first.__dict__["plans"] = {row: plan for row, plan in self.plans.items() if row < count}
        return first

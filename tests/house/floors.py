"""The floors of the house: a room, which is a folder of ``streaming/`` or ``webapp/``, imports from those below alone.

``python -m tests.house.floors`` prints the table of docs/architecture.md.
"""

from collections import defaultdict
from functools import cache

from tests.house.import_graph import ROOT, circles, imports_of

PACKAGES = ("streaming", "webapp")


def table() -> str:
    """Return the floors as a table in Markdown, the highest first; rooms that import each other are told together."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module, imported in imports_of(*PACKAGES).items():
        graph[_room(module)] |= {_room(other) for other in imported} - {_room(module)}
    together = {room: tuple(circle) for circle in circles(graph) for room in circle}

    @cache
    def floor(rooms: tuple[str, ...]) -> int:
        below = {together.get(other, (other,)) for room in rooms for other in graph[room]} - {rooms}
        return 1 + max(map(floor, below), default=-1)

    floors = defaultdict(set)
    for room in graph:
        floors[floor(together.get(room, (room,)))].add(together.get(room, (room,)))
    rows = []
    for number in sorted(floors, reverse=True):
        cells = [_cell(package, floors[number]) for package in PACKAGES]
        if any(cells):
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(["| `streaming/` | `webapp/` |", "| --- | --- |", *rows, ""])


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def _cell(package: str, found: set[tuple[str, ...]]) -> str:
    """Return the rooms of one floor that are folders of a package."""
    told = []
    for rooms in sorted(found):
        names = [room.split(".")[1] for room in rooms if room.startswith(f"{package}.")]
        names = [name for name in names if (ROOT / package / name).is_dir()]
        told += [" with ".join(f"`{name}`" for name in names)] if names else []
    return ", ".join(told)


if __name__ == "__main__":
    print(table(), end="")

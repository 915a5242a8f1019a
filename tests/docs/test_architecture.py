"""docs/architecture.md says of each folder what it is for."""

from pathlib import Path

from tests.house import floors

ROOT = Path(__file__).parents[2]
NOT_OURS = {"__pycache__", "vendor", "locale"}


def rooms():
    """Return the folders of the programs and of the page that hold sources."""
    for part, pattern in (("streaming", "*.py"), ("webapp", "*.py"), ("static/js", "*.js")):
        folders = {path.parent for path in (ROOT / part).rglob(pattern)}
        yield from (one.relative_to(ROOT).as_posix() for one in folders if not NOT_OURS & set(one.parts))


def named(room, text):
    """Whether a text names a folder, by its path or by its own name."""
    return f"`{room}/" in text or f"`{room.rsplit('/', 1)[-1]}/`" in text


def test_every_folder_is_named():
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert sorted(room for room in rooms() if not named(room, text)) == []


def test_the_table_of_floors_is_what_the_imports_say():
    told = floors.table() in (ROOT / "docs" / "architecture.md").read_text()
    assert told, "another table: python -m tests.house.floors"

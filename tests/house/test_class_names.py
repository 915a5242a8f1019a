"""One word, one thing: no two classes of the programs have the same name."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Names that Django gives: of options in a model or form, of commands, and of migrations.
OF_DJANGO = {"Meta", "Command", "Migration"}
# What two classes of one name have in common, by the name.
ON_PURPOSE = {
    "Space": "the engine's space, and its row in the database",
}


def shared_names(sources: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of classes that stand more than once in sources, with the files."""
    found = defaultdict(list)
    for path, text in sources.items():
        for name in _classes(ast.parse(text)):
            found[name].append(path)
    return {name: paths for name, paths in found.items() if len(paths) > 1 and name not in OF_DJANGO}


def _classes(node: ast.AST) -> Iterator[str]:
    """Yield the names of classes, also within classes and functions."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.ClassDef):
            yield inner.name
        if isinstance(inner, ast.stmt | ast.excepthandler):
            yield from _classes(inner)


def test_a_name_that_stands_twice_is_found():
    one, other = "class _Step: pass\nclass Meta: pass", "def made():\n    class _Step: pass\nclass Meta: pass"
    assert shared_names({"a": one, "b": other}) == {"_Step": ["a", "b"]}


def test_no_class_name_stands_twice_but_on_purpose():
    paths = [path for part in ("streaming", "webapp") for path in (ROOT / part).rglob("*.py")]
    found = shared_names({str(path.relative_to(ROOT)): path.read_text() for path in sorted(paths)})
    assert {name: files for name, files in found.items() if name not in ON_PURPOSE} == {}
    assert ON_PURPOSE.keys() <= found.keys(), "a pair that is no more is to leave the list"

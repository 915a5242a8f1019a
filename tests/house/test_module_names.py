"""What a module of the project is asked for is there, also where no test comes by: a rename is carried everywhere."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ("streaming", "webapp", "bench", "tests", "tools")
SOURCES = sorted(path for part in PROJECT for path in (ROOT / part).rglob("*.py"))


def missing(source):
    """Return what a source asks modules of the project for that they have not, as ``(line, name)``."""
    tree = ast.parse(source)
    modules = dict(_imported_modules(tree))
    return [
        (node.lineno, f"{node.value.id}.{node.attr}")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if (module := modules.get(node.value.id)) and not hasattr(module, node.attr)
    ]


def _imported_modules(tree):
    """Yield the modules of the project that ``from package import module`` binds, each with its name in the source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in PROJECT:
            for alias in node.names:
                found = getattr(importlib.import_module(node.module), alias.name, None)
                if isinstance(found, ModuleType):
                    yield alias.asname or alias.name, found


def test_a_name_that_a_module_has_not_is_found():
    source = "from webapp import tasks as jobs\njobs.reconcile()\njobs.no_such_task()\n"
    assert missing(source) == [(3, "jobs.no_such_task")]


@pytest.mark.long
def test_every_module_has_what_it_is_asked_for():
    assert {str(path.relative_to(ROOT)): found for path in SOURCES if (found := missing(path.read_text()))} == {}

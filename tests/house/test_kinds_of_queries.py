"""The registry is the only list of kinds of queries: nobody else asks which class a plan has."""

import ast
from pathlib import Path

import pytest

from streaming.kinds.registry import KINDS

ROOT = Path(__file__).parents[2]
FOLDERS = ROOT / "streaming" / "kinds"
PLANS = {kind.plan_class.__name__ for kind in KINDS}
MODULES = sorted(path for part in ("streaming", "webapp") for path in (ROOT / part).rglob("*.py"))


def questions(source):
    """Return the lines of a module that ask which class a plan has."""
    return [node.lineno for node in ast.walk(ast.parse(source)) if PLANS & set(_asked(node))]


def _asked(node):
    """Return the names of the classes that a node of a syntax tree compares something with."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return _names(node.args[1])
    if isinstance(node, ast.Compare):
        return [name for side in (node.left, *node.comparators) for name in _names(side)]
    if isinstance(node, ast.Dict):
        return [name for key in node.keys if key is not None for name in _names(key)]
    return _names(node.cls) if isinstance(node, ast.MatchClass) else []


def _names(node):
    parts = ast.walk(node)
    return [
        part.id if isinstance(part, ast.Name) else part.attr
        for part in parts
        if hasattr(part, "id") or hasattr(part, "attr")
    ]


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(plan, JoinPlan)",
        "isinstance(plan, RangePlan | plans.JoinPlan)",
        "issubclass(kind, (RangePlan, NearestPlan))",
        "type(plan) is AggregatePlan",
        "type(plan) in (MovingRangePlan,)",
        "{RangePlan: 1}[type(plan)]",
        "match plan:\n    case JoinPlan(stream=s): pass",
    ],
)
def test_every_way_of_asking_is_found(source):
    assert questions(source)


def test_only_the_folder_of_a_kind_asks_for_the_class_of_its_plans():
    asking = {
        str(path.relative_to(ROOT)): lines
        for path in MODULES
        if path.parent.parent != FOLDERS and (lines := questions(path.read_text()))
    }
    assert asking == {}, "ask streaming.kinds.registry.kind_of(plan) instead"


def test_every_folder_is_a_kind_that_is_registered_and_each_has_plans_of_its_own():
    folders = sorted(path.parent.name for path in FOLDERS.glob("*/__init__.py"))
    assert folders == sorted(kind.name for kind in KINDS)
    assert all(type(kind).__module__ == f"streaming.kinds.{kind.name}.kind" for kind in KINDS)
    assert len(PLANS) == len(KINDS)


def test_every_kind_is_in_the_documents():
    words = (ROOT / "docs" / "plans.md").read_text()
    assert [
        kind.written for kind in KINDS if f"`{kind.written}`" not in words and f'"{kind.written}"' not in words
    ] == []

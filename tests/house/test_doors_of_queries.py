"""Whoever saves the plan of a query asks first what it would cost: one function, whatever the door."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The functions that save a plan, each in its file: those that ask `_accepted`, and why the others need not.
ASKING = {("webapp/queries/queries.py", "register"), ("webapp/queries/queries.py", "edit")}
OTHERS = {
    ("webapp/queries/queries.py", "_changed"): "it saves what `edit` has asked for",
    ("webapp/demo/examples.py", "make_example"): "its plans are part of Lookout, and have no pairs to speak of",
    ("webapp/recording/settling.py", "_save"): "it saves how the engine acknowledged a query",
    ("webapp/queries/query_warnings.py", "_leave_out"): "it saves why the engine leaves a query out",
    ("webapp/questions/backtests.py", "question"): "it saves nothing, and the back-test has limits of its own",
}
MAKES = {"create", "bulk_create", "get_or_create", "update_or_create", "bulk_update", "update"}
# What may give the engine a plan that is not saved: the views of connections, of which none compares pairs.
VIEWING = {"webapp/consumers/viewports.py", "webapp/consumers/asking.py", "webapp/questions/why/asking.py"}


def functions(path):
    """Yield the functions of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def makes_a_query(call):
    """Tell whether a call makes a query, or changes the plan of one."""
    called, named = ast.unparse(call.func), {known.arg for known in call.keywords}
    if called == "setattr":
        return ast.unparse(call.args[0]) == "query"
    made = called.startswith("Query.objects") and called.rpartition(".")[2] in MAKES
    return (called == "Query" or made) and not named.isdisjoint({"plan", None})


def gives_a_plan(node):
    """Tell whether a statement gives another object a plan."""
    targets = getattr(node, "targets", [])
    return any(isinstance(one, ast.Attribute) and one.attr == "plan" and one.value.id != "self" for one in targets)


def saves_a_plan(function):
    """Tell whether a function makes queries, or gives one another plan."""
    nodes = list(ast.walk(function))
    return any(makes_a_query(node) for node in nodes if isinstance(node, ast.Call)) or any(map(gives_a_plan, nodes))


def found():
    files = [path for path in (ROOT / "webapp").rglob("*.py") if "migrations" not in path.parts]
    return {
        (path.relative_to(ROOT).as_posix(), function.name): function
        for path in files
        for function in functions(path)
        if saves_a_plan(function)
    }


def test_the_functions_that_save_a_plan_are_known():
    assert found().keys() | ASKING == OTHERS.keys() | ASKING


@pytest.mark.parametrize("door", sorted(ASKING))
def test_a_function_that_saves_a_plan_asks_what_it_would_cost(door):
    path, name = door
    (function,) = (one for one in functions(ROOT / path) if one.name == name)
    assert any(isinstance(node, ast.Call) and ast.unparse(node.func) == "_accepted" for node in ast.walk(function))
    (accepted,) = (one for one in functions(ROOT / path) if one.name == "_accepted")
    assert any(isinstance(node, ast.Call) and ast.unparse(node.func) == "weigh" for node in ast.walk(accepted))


def test_a_door_that_forgets_it_is_found():
    forgotten = "def add(user, plan):\n    Query.objects.create(owner=user, plan=plan)\n"
    assigned = "def add(query, plan):\n    query.plan = plan\n    query.save()\n"
    made = "def add(user, plan):\n    Query(owner=user, plan=plan).save()\n"
    for text in (forgotten, assigned, made):
        assert saves_a_plan(ast.parse(text).body[0])


def test_only_saved_queries_and_the_views_of_connections_reach_the_engine():
    """A view is one of a stream, of watched objects or of a sketch; *Why?* asks a part of a query that is saved."""
    files = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "webapp").rglob("*.py")}
    assert {name for name, text in files.items() if 'control_entry("register"' in text} == {"webapp/bus/control.py"}
    viewing = {name for name, text in files.items() if re.search(r"views\.(register|hold|move)\(", text)}
    assert viewing == VIEWING

"""Tests wait for conditions as long as a loaded machine may need: no limit of a wait is a number of its own."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
# The limits of waits by name, and the calls whose last argument is one.
LIMITS = {"timeout", "timeout_s", "patience_s", "within_s"}
WAITS = {"wait", "wait_for", "join", "result", "acquire"}


def limits(source):
    """Return the limits of waits of a second and more that are written as numbers, as ``(line, number)``.

    A shorter one is no limit: it says how often something is looked at.
    """
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    given = [value for call in calls for value in _limits(call)]
    numbers = [(value.lineno, value.value) for value in given if isinstance(value, ast.Constant)]
    return sorted((line, number) for line, number in numbers if isinstance(number, int | float) and number >= 1)


def _limits(call):
    """Yield what may be the limit of a call that waits."""
    yield from (given.value for given in call.keywords if given.arg in LIMITS)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in WAITS:
        yield from call.args[-1:]


def test_no_limit_of_a_wait_is_a_number_of_its_own():
    files = sorted(TESTS.rglob("*.py"))
    found = {str(file.relative_to(TESTS)): limits(file.read_text()) for file in files}
    assert {file: lines for file, lines in found.items() if lines} == {}, "use bench.live.PATIENCE_S"


def test_limits_are_found_as_arguments_and_by_name():
    assert limits("thread.join(30)\nwait_for(ready, 'a line', 5.0)\nget(timeout=10)\nwait(timeout=0.05)") == [
        (1, 30),
        (2, 5.0),
        (3, 10),
    ]
    assert limits("thread.join(PATIENCE_S)\n', '.join(names)\nwait_for(ready, 'a line')") == []

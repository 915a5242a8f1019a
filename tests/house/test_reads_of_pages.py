"""The gate: a test of the page waits for what it wants to see.

A look at a page at one moment passes on a fast machine and fails on a busy one. So the tests of the browser expect
(`expect(...)`), or look again and again (`wait_for(lambda: ...)`). What must look once is in tests/browser/screen.py.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = sorted((ROOT / "tests" / "browser").glob("test_*.py"))
# Methods of a locator that answer with what is there at this moment.
LOOKS = {
    *("all", "all_inner_texts", "all_text_contents", "bounding_box", "count", "get_attribute", "inner_html"),
    *("inner_text", "input_value", "is_checked", "is_disabled", "is_editable", "is_enabled", "is_hidden"),
    *("is_visible", "text_content"),
}


def looks_once(tree):
    """Yield the line and the method of each look that nobody repeats."""
    waited_for = {
        node.args[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "wait_for" and isinstance(node.args[0], ast.Name)
    }
    repeated = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and node.name in waited_for)
        for inner in ast.walk(node)
    }
    asserted = {inner for node in ast.walk(tree) if isinstance(node, ast.Assert) for inner in ast.walk(node.test)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node not in repeated:
            name, words = node.func.attr, [*node.args, *node.keywords]
            a_look = name in LOOKS and (not words or name == "get_attribute")
            if a_look or (name == "evaluate" and node in asserted):
                yield node.lineno, name


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_tests_of_the_page_wait_for_what_they_want_to_see(path):
    assert not list(looks_once(ast.parse(path.read_text()))), "expect(...), or wait_for(lambda: ...)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("assert button.bounding_box()['height'] > 44", ["bounding_box"]),
        ("assert page.evaluate('innerWidth') == 390", ["evaluate"]),
        ("page.evaluate('location.reload()')", []),
        ("wait_for(lambda: rows.count() == 2, 'two rows')", []),
        ("wait_for(rows.count, 'rows')", []),
        ("def two():\n    return rows.count() == 2\n\n\nwait_for(two, 'two rows')", []),
        ("assert text.count('M') == 2", []),
        ("name = row.get_attribute('title')", ["get_attribute"]),
    ],
)
def test_the_gate_finds_looks(text, found):
    assert [name for _, name in looks_once(ast.parse(text))] == found

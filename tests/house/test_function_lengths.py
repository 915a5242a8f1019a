"""Functions are short and simple, but for those on a list that can only become shorter."""

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# 99 % of all functions have at most so many lines behind their docstring.
MOST_LINES = 29
PARTS = ("streaming", "webapp", "bench", "tests")
LONGER = ROOT / "tests" / "house" / "long_functions.txt"
COMPLEX = "C901"
# How many entries the lists have; these numbers only become smaller.
MOST_LONGER, MOST_EXCEPTED = 103, 58


def functions() -> Iterator[tuple[str, int]]:
    """Yield the functions, as ``file:name``, and how many lines each has."""
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{path.relative_to(ROOT).as_posix()}:{node.name}", _lines(node)


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def longest() -> dict[str, int]:
    """Return the functions with more lines than most have; of those of one name in a file, the longest."""
    found: dict[str, int] = {}
    for name, lines in functions():
        if lines > MOST_LINES:
            found[name] = max(lines, found.get(name, 0))
    return found


def test_no_function_is_longer_than_it_may_be():
    """A function on the list may have as many lines as stand there; the list may lose entries, and gets no other."""
    entries = (line.rsplit(" ", 1) for line in LONGER.read_text().splitlines())
    listed, now = {name: int(lines) for name, lines in entries}, longest()
    assert {name: lines for name, lines in now.items() if lines > listed.get(name, MOST_LINES)} == {}
    assert listed.keys() - now.keys() == set(), "what is no longer than others leaves the list"
    assert len(listed) <= MOST_LONGER


def test_lines_are_those_of_the_body_behind_its_docstring():
    (function,) = ast.parse('def made(\n    one,\n):\n    """Say.\n\n    More.\n    """\n    one()\n\n    two()').body
    assert _lines(function) == 3


def test_every_file_that_may_be_complex_is():
    """`ruff` holds the complexity; the exceptions in pyproject.toml may become fewer."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    most = lint["mccabe"]["max-complexity"]
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", COMPLEX, *PARTS]
    options = ["--config", f"lint.mccabe.max-complexity={most}", "--output-format", "json"]
    told = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    complex_now = {Path(one["filename"]).relative_to(ROOT).as_posix() for one in json.loads(told.stdout)}
    excepted = {path for path, rules in lint["per-file-ignores"].items() if COMPLEX in rules}
    assert excepted - complex_now == set(), "what is simple by now leaves the list"
    assert len(excepted) <= MOST_EXCEPTED

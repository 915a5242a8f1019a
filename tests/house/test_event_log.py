"""One module speaks Redis' commands for streams, and one names the keys in Redis."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [path for folder in ("streaming", "webapp", "bench") for path in (ROOT / folder).rglob("*.py")]
COMMANDS = {
    "xack", "xadd", "xautoclaim", "xclaim", "xdel", "xgroup", "xinfo", "xlen", "xpending", "xrange", "xread",
    "xreadgroup", "xrevrange", "xsetid", "xtrim",
}  # fmt: skip
EVENT_LOG = ROOT / "streaming" / "eventlog" / "redis_streams.py"
KEYS = ROOT / "streaming" / "keys.py"
# What begins like a key, but is the name of an event, or of a measure, in the browser.
NO_KEYS = re.compile("lookout:(frames|table)")


def words(text):
    """Return the names that a program uses as attributes, and the words of its texts other than docstrings."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    names, texts = set(), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            texts.append(node.value)
    return names, texts


def speaks_of_streams(text):
    """Return whether a program uses a command for streams, by a method or in a script."""
    names, texts = words(text)
    return bool(COMMANDS & (names | {word.lower() for told in texts for word in re.findall(r"\w+", told)}))


@pytest.mark.long
def test_nothing_but_the_event_log_speaks_redis_commands_for_streams():
    assert {path for path in SOURCES if speaks_of_streams(path.read_text())} == {EVENT_LOG}


def test_the_gate_sees_methods_pipelines_and_scripts():
    for text in ("client.xadd(log, {})", "self.redis.pipeline().xtrim(log)", "s = \"redis.call('XLEN', k)\""):
        assert speaks_of_streams(text)
    assert not speaks_of_streams('"""xadd is not for here."""\nclient.hset(key, "a", 1)')


def test_the_keys_of_redis_are_named_in_one_module():
    named = {path for path in SOURCES for told in words(path.read_text())[1] if NO_KEYS.sub("", told).count("lookout:")}
    assert named == {KEYS}


def test_the_module_of_the_keys_lists_them_all():
    text = KEYS.read_text()
    listed = set(re.findall(r"^``(lookout:[^`]*)``", text, re.MULTILINE))
    used = {re.sub(r"\{self\.", "{", key).replace("{web}", "{id}") for key in re.findall(r'f?"(lookout:[^"]+)"', text)}
    assert used == listed

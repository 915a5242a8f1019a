"""No test needs another one to have run: no function of tests changes what its module holds."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
CHANGING = {"add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "pop", "popitem"}
CHANGING |= {"popleft", "remove", "setdefault", "update"}


def changed_in_functions(source):
    """Return what functions change of the values and classes that their module names, as ``(line, name)``.

    Whatever ``global`` declares counts, too. A name that a function binds itself is its own.
    """
    tree = ast.parse(source)
    held = _held(tree)
    return sorted({change for function in _functions(tree) for change in _changes(function, held)})


def _functions(node):
    """Yield the functions and methods of a module, without those within other functions."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            yield inner
        elif isinstance(inner, ast.stmt):
            yield from _functions(inner)


def _held(tree):
    """Return the names of values and classes that a module binds; what it imports is another module's."""
    targets = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)]
    names = {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name) and _binds(node)}
    return names | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}


def _binds(node):
    return isinstance(node.ctx, ast.Store)


def _changes(function, held):
    """Yield what a function, and functions within it, change of what its module holds."""
    nodes = list(ast.walk(function))
    shared = {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and _binds(node)}
    for node in nodes:
        if isinstance(node, ast.Global):
            yield from ((node.lineno, name) for name in node.names)
        elif (name := _root(_changed(node))) in held and name not in own - shared:
            yield node.lineno, name


def _changed(node):
    """Return what a node changes, if it changes something in place."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
        return node.func.value
    if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return node.value
    return None


def _root(node):
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


FILLED = """
SEEN, KNOWN = defaultdict(int), [[], []]
class Twin:
    seen = set()
def test_draws(monkeypatch):
    SEEN["drawn"] += 1
    KNOWN[0].append(1)
    Twin.seen |= {2}
    SEEN.get("drawn")
    os.environ.update(a=1)
def test_counts():
    global LAST
    LAST = 3
def test_has_its_own(KNOWN):
    KNOWN.append(1)
"""


def test_what_functions_fill_for_others_is_found():
    assert changed_in_functions(FILLED) == [(6, "SEEN"), (7, "KNOWN"), (8, "Twin"), (12, "LAST")]


def test_no_function_of_tests_changes_what_its_module_holds():
    sources = {path.relative_to(TESTS): path.read_text() for path in sorted(TESTS.rglob("*.py"))}
    assert {str(path): found for path, text in sources.items() if (found := changed_in_functions(text))} == {}

"""Which modules of the project import which, and which of them do so in a circle."""

import ast
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imports_of(*packages: str) -> dict[str, set[str]]:
    """Return the imports between the modules of packages, also those within functions.

    What runs only where types are checked does not count, nor that a module's packages are loaded before it.
    """
    sources = {_name(path): path.read_text() for part in packages for path in (ROOT / part).rglob("*.py")}
    return graph_of(sources)


def graph_of(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the imports between modules, given their texts by name."""
    return {
        name: {found for found in _imported(_imports(ast.parse(text)), sources) if found != name}
        for name, text in sources.items()
    }


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when a module is loaded, or later."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
        return
    for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    for inner in node.orelse if for_types else ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt | ast.excepthandler | ast.match_case):  # expressions import nothing
            yield from _imports(inner)


def _imported(nodes: Iterator[ast.Import | ast.ImportFrom], modules: Mapping[str, str]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        else:
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield from (found for found in (module if module in modules else node.module,) if found in modules)


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, each in order.

    References
    ----------
    S. R. Kosaraju's algorithm: A. V. Aho, J. E. Hopcroft, J. D. Ullman, "Data Structures and Algorithms", 1983, 6.7.
    """
    order: list[str] = []
    _walk(graph, graph, set(), order)
    back: dict[str, set[str]] = {name: set() for name in graph}
    for name, imported in graph.items():
        for other in imported:
            back[other].add(name)
    seen: set[str] = set()
    found = []
    for name in reversed(order):
        component: list[str] = []
        _walk(back, [name], seen, component)
        found.append(sorted(component))
    return sorted(one for one in found if len(one) > 1)


def _walk(graph: Mapping[str, Set[str]], starts, seen: set[str], order: list[str]) -> None:
    """Append what can be reached to `order`, each module behind those that it leads to."""
    for start in starts:
        ways = [] if start in seen else [(start, iter(sorted(graph[start])))]
        seen.add(start)
        while ways:
            name, left = ways[-1]
            following = next((other for other in left if other not in seen), None)
            if following is None:
                order.append(name)
                ways.pop()
            else:
                seen.add(following)
                ways.append((following, iter(sorted(graph[following]))))

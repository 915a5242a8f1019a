"""Functions say the types of what they take and of what they return, so that mypy reads them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("streaming", "webapp")
# The share of functions that are fully annotated; it only rises.
FLOOR = 0.999

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(node: ast.AST, in_class: bool = False) -> Iterator[tuple[Function, bool]]:
    """Yield all functions, nested ones, too, each with whether it stands in a class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child, in_class
            yield from functions(child)
        elif isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):  # no expression has a function
            yield from functions(child, in_class or isinstance(child, ast.ClassDef))


def is_annotated(function: Function, in_class: bool) -> bool:
    """Tell whether a function says the types of all parameters but `self` or `cls`, and of what it returns."""
    given = function.args
    placed = [*given.posonlyargs, *given.args]
    is_static = any(isinstance(named, ast.Name) and named.id == "staticmethod" for named in function.decorator_list)
    more = [given.vararg, *given.kwonlyargs, given.kwarg]
    asked = [one for one in [*placed[in_class and not is_static :], *more] if one is not None]
    return function.returns is not None and all(one.annotation is not None for one in asked)


def bare_in(source: str) -> list[str]:
    return [one.name for one, in_class in functions(ast.parse(source)) if not is_annotated(one, in_class)]


def test_a_function_is_bare_if_one_of_its_types_is_missing():
    source = """
class C:
    def good(self, one: int, *more: str, named: int = 0, **rest: int) -> None: ...
    @staticmethod
    def static(one) -> None: ...
    def without_return(self): ...
    if True:
        def method(self) -> None:
            def nested(self) -> None: ...
def outer(*more, one: int) -> None:
    async def inner(one: int) -> None: ...
"""
    assert bare_in(source) == ["static", "without_return", "nested", "outer"]


def test_functions_say_their_types():
    bare, count = {}, 0
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text())
        told = list(functions(tree))
        count += len(told)
        for function, in_class in told:
            if not is_annotated(function, in_class):
                bare[f"{path.relative_to(ROOT)}:{function.lineno}"] = function.name
    share = 1 - len(bare) / count
    assert share >= FLOOR, f"{share:.4f} of {count} functions are fully annotated; not so: {bare}"

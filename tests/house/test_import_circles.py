"""No module of the programs imports itself, over however many others."""

from tests.house.import_graph import circles, imports_of


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "e"}, "e": {"d"}, "f": set()}
    assert circles(graph) == [["b", "c"], ["d", "e"]]


def test_no_modules_import_each_other_in_a_circle():
    graph, _ = imports_of("streaming", "webapp")
    assert circles(graph) == []

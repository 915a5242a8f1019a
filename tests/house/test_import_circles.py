"""No module of the programs imports itself, over however many others, when it is loaded or later."""

from tests.house.import_graph import circles, graph_of, imports_of


def test_circles_are_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a", "e"}, "e": {"d"}, "f": set()}
    assert circles(graph) == [["b", "c"], ["d", "e"]]


def test_imports_within_functions_and_branches_count_but_not_those_for_types():
    sources = {
        "p.a": "def f():\n    async def g():\n        from p import b",
        "p.b": "match 1:\n    case 1:\n        import p.c",
        "p.c": "class C:\n    def f(self):\n        if self:\n            from p.a import f",
        "p.d": "if TYPE_CHECKING:\n    import p.a\nelse:\n    import p.c",
    }
    graph = graph_of(sources)
    assert graph == {"p.a": {"p.b"}, "p.b": {"p.c"}, "p.c": {"p.a"}, "p.d": {"p.c"}}
    assert circles(graph) == [["p.a", "p.b", "p.c"]]


def test_no_modules_import_each_other_in_a_circle():
    assert circles(imports_of("streaming", "webapp")) == []

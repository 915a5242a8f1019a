"""CQL2 text is parsed fast whatever it is, as another parser does; what is wrong is said in a sentence."""

import time

import cql2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.cql2 import parse_text
from streaming.errors import InvalidPlan
from streaming.filters import parse_filter
from streaming.plans import parse_plan
from tests.draws import examples

NAMES = st.sampled_from(["a", "speed_mps", "é", '"my name"', "order", "android", "b.c"])
LITERALS = st.sampled_from(["5", "-5", "1.5e3", "'it''s'", "''", "TRUE", "false"])
SUMS = st.recursive(
    NAMES | LITERALS,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/%^"), inner) | inner.map("CASEI({})".format)
    ),
    max_leaves=4,
)
PREDICATES = st.one_of(
    st.builds("{} {} {}".format, SUMS, st.sampled_from(["=", "<>", "!=", "<", "<=", ">", ">="]), SUMS),
    st.builds("{} {}IN ({}, {})".format, SUMS, st.sampled_from(["", "NOT "]), SUMS, SUMS),
    st.builds("{} {}BETWEEN {} AND {}".format, SUMS, st.sampled_from(["", "not "]), SUMS, SUMS),
    st.builds("{} {}LIKE {}".format, NAMES, st.sampled_from(["", "NOT "]), st.sampled_from(["'a%'", "CASEI('_')"])),
    st.builds("{} IS {}NULL".format, NAMES, st.sampled_from(["", "NOT "])),
    NAMES,
)
CONDITIONS = st.recursive(
    PREDICATES,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["AND", "or"]), inner),
        inner.map("NOT {}".format),
        inner.map("({})".format),
    ),
    max_leaves=6,
)


def flat(node):
    """Return a tree with chains of one operator as one node; -5 and -(5) are one."""
    if isinstance(node, list):
        return [flat(child) for child in node]
    if not isinstance(node, dict) or "args" not in node:
        return node
    args = [flat(child) for child in node["args"]]
    if node["op"] in ("and", "or"):
        args = [part for arg in args for part in (arg["args"] if is_chain(arg, node["op"]) else [arg])]
    return {"op": node["op"], "args": args}


def is_chain(node, operator):
    return isinstance(node, dict) and node.get("op") == operator


@examples(300)
@given(CONDITIONS)
def test_a_text_means_what_it_means_to_another_parser(text):
    assert flat(parse_text(text)) == flat(cql2.parse_text(text).to_json())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speed_mps >", "where: a value is missing at the end, character 12: a number"),
        ("speed_mps > 5 AN type = 'x'", "where: an operator such as =, < or AND is expected at character 15; got AN"),
        ("type = 'cargo", "where: the ' at character 8 is not closed"),
        ("(a = 1 AND (b = 2)", "where: the ( at character 1 is not closed"),
        ("a = 1)", "where: the ) at character 6 closes no bracket"),
        ("a == 1", "where: write = instead of == at character 3"),
        ("a > 5 && b < 3", "where: write AND instead of && at character 7"),
        ("speed mps > 5", 'got mps (a name with spaces needs "double quotes")'),
        ("a IN ()", "where: a value is expected at character 7"),
        ("a = 1e999", "where: a number must be smaller than 1.8e308"),
        ("f(a) = 1", "where: a number or a property is needed; got F(...)"),
    ],
)
def test_an_error_says_what_is_wrong_and_where(text, words):
    with pytest.raises(InvalidPlan) as error:
        parse_filter(text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000,
        "(" * 30 + "a =" + ")" * 30,
        "(a = 1 AND " * 100,
        "NOT " * 490 + "a",
        "a = " + "-" * 1_900 + "b",
        "a IN (" + "+".join("b" * 900) + ")",
        "a = " + "=".join("a" * 900),
        "CASEI(" * 200 + "a" + ")" * 200 + " = 'x'",
        "(" * 100_000,
        " OR ".join(f"a{number} = 1" for number in range(100)),
    ],
    ids=range(10),
)
def test_no_text_overflows_or_takes_long(text):
    began = time.process_time()
    with pytest.raises(InvalidPlan, match="where"):
        parse_filter(text)
    assert time.process_time() - began < 2


def test_the_field_is_named_in_a_join():
    join = {"layer": "zones", "where": "a ="}
    with pytest.raises(InvalidPlan, match=r"^join: where: a value is missing"):
        parse_plan({"stream": "ships", "kind": "join", "join": join})

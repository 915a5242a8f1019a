"""Conditions of rules: three truth values, what is refused, and the builder."""

import itertools

import numpy as np
import pytest

from streaming.errors import InvalidPlan
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.conditions import FALSE, TRUE, UNKNOWN
from streaming.operators.rules import UNKNOWN_BIT, Rules
from streaming.plans import QueryPlanBuilder, parse_plan, plan_document
from streaming.plans.conditions import all_of, any_of, count_of, in_answer, not_so, silent_in, value_of
from tests.servers.test_rules import holds


def rule(when, **more):
    return {"stream": "ships", "kind": "rule", "when": when} | more


NESTED = [
    in_answer(1),
    all_of(in_answer(1), not_so(in_answer(2))),
    all_of(in_answer(1), any_of(in_answer(2), not_so(in_answer(3)))),
    any_of(in_answer(1), all_of(in_answer(2), not_so(not_so(in_answer(3))))),
    all_of(in_answer(4), not_so(all_of(in_answer(1), any_of(in_answer(2), in_answer(3))))),
    any_of(in_answer(1), all_of(in_answer(2), not_so(in_answer(2)))),
]


@pytest.mark.parametrize("when", NESTED)
def test_each_entry_of_the_truth_table_is_what_kleene_says(when):
    plan = parse_plan(rule(when))
    rules, count = Rules({10: plan}), len(plan.terms)
    for values in itertools.product((FALSE, UNKNOWN, TRUE), repeat=count):
        bits = sum(1 << bit for bit, value in enumerate(values) if value == TRUE)
        unknown = sum(1 << bit for bit, value in enumerate(values) if value == UNKNOWN)
        members = {term.query for term, value in zip(plan.terms, values, strict=True) if value == TRUE}
        stopped = {term.query for term, value in zip(plan.terms, values, strict=True) if value == UNKNOWN}
        expected = holds(when, members, stopped)
        # A bit that was true before its query stopped does not count.
        for one in (bits | unknown << UNKNOWN_BIT, bits | unknown | unknown << UNKNOWN_BIT):
            place, entry = np.array([0]), np.array([one])
            assert bool(rules.begins(place, entry)[0]) == (expected is True)
            assert bool(rules.may_last(place, entry)[0]) == (expected is None)


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ({"value": 7}, "when: value must be an object with query, and below or above; got 7"),
        ({"value": {"query": 7}}, "when: value must have one of below, above; got none"),
        (
            {"value": {"query": 7, "below": 1, "above": 2}},
            "when: value must have one of below, above; got below, above",
        ),
        ({"value": {"query": 0, "below": 1}}, "when: value: query must be the number of a query; got 0"),
        ({"value": {"query": 7, "below": "x"}}, "when: value: below must be a finite number; got 'x'"),
        (
            {"value": {"query": 7, "below": 1, "group": ""}},
            "when: value: group must be a text that is not empty; got ''",
        ),
        ({"count": {"query": 7, "below": 1, "group": "x"}}, "when: count"),
        (
            all_of(in_answer(7), value_of(8, below=1)),
            "a rule must be about objects (query) or about whole answers (count, value); got both",
        ),
        (
            all_of(all_of(*(value_of(7, below=limit) for limit in range(8))), value_of(7, above=9)),
            "a rule must name at most 8 queries, counts or values; got 9",
        ),
    ],
)
def test_a_condition_that_breaks_a_rule_is_refused_with_the_rule_and_the_value(when, words):
    with pytest.raises(InvalidPlan) as refused:
        parse_plan(rule(when))
    assert words in str(refused.value)


def test_the_builder_makes_rules_with_counts_and_values():
    slow = value_of(7, "tanker", below=1)
    builder = QueryPlanBuilder.create_query_on("ships").alarm_when(
        all_of(slow, not_so(count_of(8, above=3))), for_s=600, until=value_of(7, "tanker", below=2), rearm_s=60
    )
    document = builder.on_schedule("08:00", "18:00", ["mon"], "Europe/Berlin").build()
    assert parse_plan(plan_document(document)) == document
    assert (document.for_s, document.rearm_s, document.schedule.days) == (600, 60, (0,))
    assert [(term.operator, term.query, term.group) for term in document.terms] == [
        ("value", 7, "tanker"),
        ("count", 8, None),
        ("value", 7, "tanker"),
    ]
    often = builder.more_often_than(3, 600).build()
    assert (often.rate.more_than, often.until, often.for_s) == (3, None, 0)
    assert QueryPlanBuilder.create_query_on("ships").alarm_when(in_answer(7)).build().queries == (7,)


def test_the_builder_makes_rules_about_silence():
    builder = QueryPlanBuilder.create_query_on("ships").alarm_when(silent_in(7, "a", "b", "a"), for_s=600)
    plan = builder.build()
    document = plan_document(plan)
    assert document["when"] == {"silent": {"query": 7, "expected": ["a", "b"]}}
    assert parse_plan(document) == plan
    assert (plan.silent, plan.whole, plan.queries, Rules({1: plan}).silent_us.tolist()) == (True, False, (7,), [600e6])
    assert "silent, last in query 7, or expected: a, b for 10 min" in kind_of(plan).words(document, "m")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, "a rule with silent must have a for_s above 0"),
        ({"for_s": 5, "rate": {"more_than": 1, "within_s": 9}}, "and no rate and no until"),
        ({"for_s": 5, "until": in_answer(7)}, "and no rate and no until"),
        ({"for_s": 5, "when": {"silent": 7}}, "when: silent must be an object with query, and perhaps expected; got 7"),
        ({"for_s": 5, "when": {"silent": {"query": 0}}}, "when: silent: query must be the number of a query; got 0"),
        (
            {"for_s": 5, "when": {"silent": {"query": 7, "expected": ""}}},
            "when: silent: expected must be a list of at most 1000 keys; got ''",
        ),
        ({"for_s": 5, "when": {"silent": {"query": 7, "expected": [1]}}}, "expected must be a text that is not empty"),
        ({"for_s": 5, "when": not_so(silent_in(7))}, "silent must be the whole condition of when"),
        ({"for_s": 5, "when": all_of(in_answer(7), silent_in(7))}, "silent must be the whole condition of when"),
        ({"for_s": 5, "when": in_answer(7), "until": silent_in(7)}, "silent must be the whole condition of when"),
    ],
)
def test_a_rule_about_silence_that_breaks_a_rule_is_refused(more, words):
    with pytest.raises(InvalidPlan) as refused:
        parse_plan(rule(silent_in(7)) | more)
    assert words in str(refused.value)

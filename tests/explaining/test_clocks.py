"""The clock of a rule and an object, as the engine tells it, explains exactly the alarms that the engine has."""

import random

import pytest

from streaming.explaining import ExplanationFacts, Subject, explain
from streaming.explaining.rules import rule_term
from streaming.explaining.terms import every
from streaming.plans import parse_plan
from streaming.results.rule_clock import ALARM, RuleClock
from streaming.spaces import EARTH
from tests.servers.test_rules import IN, NARROW, QUERIES, SECOND_US, START_S, WIDE, Engine, History, box_elements

NOWHERE = [0.0, 0.0, -float("inf"), 0.0, 0.0, float("inf")]


def subject_of(key):
    return Subject.of("a", key, START_S * SECOND_US, NOWHERE, {}, EARTH)


class AskedHistory(History):
    """A history in which the clocks of all rules and objects are asked for in each batch."""

    checked = 0

    def __init__(self, folder, rng):
        super().__init__(folder, rng)
        self.plain, self.engine.run = self.engine.run, self.run_asked

    def run_asked(self, elements, control):
        asked = [{"op": "clock", "query": rule, "key": f"a{key}"} for rule in self.oracle.rules for key in range(8)]
        if isinstance(control, list):
            control = [*control, *asked]
        self.fragments = self.plain(elements, control)
        return self.fragments

    def batch(self, number):
        super().batch(number)
        for told in [clock for fragment in self.fragments for clock in fragment.clocks]:
            self.check(RuleClock.of(told))

    def check(self, clock):
        plan = parse_plan(self.oracle.rules[clock.query])
        known = self.oracle.followers.get((clock.query, clock.key))
        assert (clock.phase == ALARM) == bool(known and known.alarm)
        if known and known.since is not None and not plan.rate:
            assert clock.since_us == known.since * SECOND_US
        told = explain(plan, subject_of(clock.key), ExplanationFacts(clock=clock))
        assert told == every(told.asks, told.parts, told.found)
        assert bool(told.holds) == (clock.phase == ALARM), told
        assert told.holds is not None or clock.unknown
        assert told.holds or [term for term in told.deciding() if term.found]
        self.checked += 1


@pytest.mark.long
@pytest.mark.separate_seeds(2, 5, 9, 12)
def test_each_clock_explains_whether_its_object_has_an_alarm(tmp_path, seed):
    history = AskedHistory(tmp_path, random.Random(seed))
    history.play(range(40))
    assert history.checked > 500


def told_at(folder, plan, scene):
    """Run batches of (second, longitude); return the explanation of the ship after each."""
    engine, told = Engine(folder, 1, 2, rescaled=0.0), []
    begin = [
        {"op": "register", "query": query, "revision": 1, "plan": asked}
        for query, asked in ((NARROW, QUERIES[NARROW]), (WIDE, QUERIES[WIDE]), (10, plan))
    ]
    for second, x in scene:
        box = [x, 0.0, -float("inf"), x, 0.0, float("inf")]
        table = box_elements("a", ["ship"], [second * SECOND_US], [box], [{}])
        control = [{"op": "tick", "now_us": second * SECOND_US}, *begin, {"op": "clock", "query": 10, "key": "ship"}]
        fragments = engine.run([("a", second * SECOND_US, table)], control)
        (clock,) = [clock for fragment in fragments for clock in fragment.clocks]
        told.append(explain(parse_plan(plan), subject_of("ship"), ExplanationFacts(clock=RuleClock.of(clock))))
    return told


def test_an_explanation_says_how_long_the_condition_has_held_and_how_long_it_still_must(tmp_path):
    plan = {"stream": "a", "kind": "rule", "when": IN["narrow"], "for_s": 300, "rearm_s": 600}
    scene = [(0, 50.0), (100, 0.0), (230, 1.0), (410, 1.0), (420, 50.0), (450, 1.0)]
    outside, _, holding, alarm, left, again = told_at(tmp_path, plan, [(START_S + s, x) for s, x in scene])
    assert [term.found for term in outside.deciding()] == [
        "the engine does not have it in the answer",
        "the condition does not hold",
    ]
    (term,) = holding.deciding()
    assert term.asks == "for 5 min without a break"
    assert term.found == "holds for 2 min 9 s, since 08:01:30 UTC; 2 min 51 s to go"
    assert (alarm.holds, alarm.found) == (True, "since 08:06:30 UTC")
    assert not left.holds
    assert [term.found for term in again.deciding()] == [
        "holds for 0 s, since 08:07:20 UTC; 5 min to go",
        "not again before 08:16:50 UTC, in 9 min 31 s",
    ]


def test_an_explanation_says_how_often_the_condition_began_to_hold(tmp_path):
    plan = {"stream": "a", "kind": "rule", "when": IN["narrow"], "rate": {"more_than": 1, "within_s": 60}}
    scene = [(0, 0.0), (10, 50.0), (20, 0.0)]
    once, still, twice = told_at(tmp_path, plan, [(START_S + s, x) for s, x in scene])
    assert [term.found for term in once.deciding()] == ["1 time: 07:59:50 UTC"]
    assert still.parts[0].found == "1 time: 07:59:50 UTC"
    assert twice.holds and twice.parts[0].found == "2 times: 07:59:50 UTC, 08:00:10 UTC"


def test_the_clock_of_a_rule_that_does_not_run_is_not_told(tmp_path):
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    fragments = engine.run([], [{"op": "clock", "query": 10, "key": "ship"}])
    assert all(fragment.clocks == () for fragment in fragments)


def test_a_rule_about_numbers_shows_each_beside_its_bound():
    when = {
        "all": [{"value": {"query": 8, "group": "tanker", "below": 1}}, {"not": {"count": {"query": 7, "above": 3}}}]
    }
    plan = parse_plan({"stream": "a", "kind": "rule", "when": when, "until": {"value": {"query": 9, "above": 2}}})
    names = {7: "Port", 8: "Mean speed", 9: "Largest"}

    def told(phase, *numbers):
        clock = RuleClock(10, "", START_S * SECOND_US, phase, phase == ALARM, numbers=numbers)
        return rule_term(plan, None, ExplanationFacts(clock=clock, names=names))

    begun = told(ALARM, 0.8123, 1.0, None)
    assert begun.holds
    mean = begun.parts[0].parts[0].parts[0]
    assert (mean.asks, mean.found) == ("the value of \u201cMean speed\u201d for tanker is below 1", "0.8123")
    idle = told("idle", 1.5, 5.0, None)
    assert [(term.asks, term.found) for term in idle.deciding()] == [
        ("the value of \u201cMean speed\u201d for tanker is below 1", "1.5"),
        ("the count of \u201cPort\u201d is above 3", "5 objects"),
    ]
    lacking = told("idle", None, 1.0, None)
    assert lacking.holds is None
    assert [term.found for term in lacking.deciding()] == ["the query does not run, or there is no value"]

"""Rules keep their times: alarms are those of brute force over all reports, however these come in micro-batches."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from streaming.elements import box_elements
from streaming.results import ENTERED, LEFT
from streaming.results.netting import net
from tests.draws import examples, rngs
from tests.servers.harness import Client, Engine
from tests.servers.test_rules import CONDITIONS, EAST, NARROW, OFFICE, QUERIES, START_S, WIDE, holds

SECOND_US = 1_000_000
START_US, NINE_US = START_S * SECOND_US, (START_S + 10) * SECOND_US
UNDERWAY_US = 500_000
MINUTE = OFFICE | {"to": "09:01"}
# A partner moves at the clock, and who is among the nearest depends on others.
BY_THEMSELVES = [condition for condition in CONDITIONS if "4" not in str(condition) and "5" not in str(condition)]


def us(seconds):
    return round(seconds * SECOND_US)


class BruteForce:
    """The alarms of one rule and one object, from what happened to the object: pairs of a time and its answers."""

    def __init__(self, plan, happened, until_us):
        self.plan, self.alarms = plan, []
        self.state, self.due_us, self.rearmed_us = "idle", None, 0
        members, events = set(), [(at, "report", found) for at, found in happened]
        events += [(at, "turn", None) for at in self.turns()]
        events = sorted(events, key=lambda event: event[0])
        ends = [at for at, *_ in events[1:]] + [until_us]
        for (at, what, found), until in zip(events, ends, strict=False):
            members = found if what == "report" else members
            self.at(at, members)
            self.passed(until)

    def turns(self):
        schedule = self.plan.get("schedule")
        return [] if schedule is None else [NINE_US, *([NINE_US + 60 * SECOND_US] if schedule == MINUTE else [])]

    def counts(self, at):
        turns = self.turns()
        return not turns or sum(turn <= at for turn in turns) == 1

    def at(self, at, members):
        """Something happens."""
        begins = self.counts(at) and holds(self.plan["when"], members)
        lasts = self.counts(at) and (begins or ("until" in self.plan and holds(self.plan["until"], members)))
        if self.state == "alarm" and not lasts:
            self.alarms.append((LEFT, at))
            self.state, self.rearmed_us = "idle", at + us(self.plan.get("rearm_s", 0))
        elif self.state == "holding" and not begins:
            self.state = "idle"
        elif self.state == "idle" and begins:
            self.state, self.due_us = "holding", max(at + us(self.plan["for_s"]), self.rearmed_us)
            if self.due_us <= at:
                self.begin()

    def passed(self, until):
        """Nothing happens before a time."""
        if self.state == "holding" and self.due_us < until:
            self.begin()

    def begin(self):
        self.alarms.append((ENTERED, self.due_us))
        self.state = "alarm"


class Feed:
    """Reports of some objects, cut at random into micro-batches, some of them many seconds long."""

    def __init__(self, folder, rng, backlog):
        self.rng, self.backlog = rng, backlog
        partitions = 1 if backlog else rng.randint(1, 3)
        self.engine = Engine(folder, partitions, rng.randint(1, 4), saved_every=rng.choice([1, 3]))
        self.client, self.told = Client(), []
        self.client.quiet |= {NARROW, *range(10, 20)}

    def run(self, reports, clock_us, control=()):
        tables = []
        for heard_us, key, at_us, lon, lat, kind in reports:
            box = [lon, lat, -float("inf"), lon, lat, float("inf")]
            tables.append(("a", heard_us, box_elements("a", [key], [at_us], [box], [{"kind": kind}])))
        tick = [{"op": "tick", "now_us": clock_us}] if clock_us else []
        fragments = self.engine.run_or_die(tables, [*tick, *control], self.rng, 0.1)
        self.client.receive(fragments)
        rows = (row for row in net(fragments).to_pylist() if row["query"] >= 10)
        self.told += [(row["query"], row["key"], row["sign"], row["time_us"]) for row in rows]

    def play(self, reports, end_us):
        """Read reports in the order in which they were heard; the clock is set once a second, or runs ahead."""
        rng, left, now_us = self.rng, list(reports), START_US
        while left or now_us < end_us:
            now_us += rng.choice([300_000, 700_000, 1_100_000, 15_000_000])
            count = sum(heard_us <= now_us - rng.choice([0, 200_000]) for heard_us, *_ in left)
            if self.backlog and count:
                count = rng.randint(1, count)
            while 0 < count < len(left) and left[count][0] == left[count - 1][0]:  # one block has both
                count += 1
            self.run(left[:count], now_us if rng.random() < 0.7 else None)
            del left[:count]
        for more in range(4):
            self.run([], end_us + (more + 2) * SECOND_US)


def rule(rng):
    plan = {"stream": "a", "kind": "rule", "when": rng.choice(BY_THEMSELVES), "for_s": rng.choice([0, 0.7, 2.5, 10])}
    if rng.random() < 0.3:
        plan["until"] = {"query": WIDE}
    if rng.random() < 0.3:
        plan["rearm_s"] = rng.choice([3.3, 12])
    if rng.random() < 0.4:
        plan["schedule"] = rng.choice([OFFICE, MINUTE])
    return plan


def drawn(rng, count):
    """Return reports in the order in which they are heard: some late, some at the same moment as the one before."""
    reports, at_us = [], dict.fromkeys((f"a{number}" for number in range(3)), START_US)
    for _ in range(count):
        key = rng.choice([*at_us])
        at_us[key] += us(rng.choice([0.05, 0.4, 1.3, 2.5, 7, 10])) + rng.randrange(3)
        late = rng.choice([0, 50_000, 400_000, 900_000])
        known = max((heard for heard, name, *_ in reports if name == key), default=0)
        heard_us = max(known, at_us[key] + late)
        lon, lat = rng.choice([0, 5, -5, 15, -15, 40]), rng.choice([0, 0, 15])
        reports.append((heard_us, key, at_us[key], lon, lat, rng.choice("xy")))
    return sorted(reports, key=lambda report: report[0])


def happened_to(key, reports):
    """Return when an object was in which answers from then on: of reports heard at one moment, the newest counts."""
    found, last_us = {}, 0
    for heard_us, name, at_us, lon, lat, kind in reports:
        if name == key:
            members = {WIDE} if abs(lon) <= 20 and abs(lat) <= 20 else set()
            members |= {NARROW} if abs(lon) <= 10 and abs(lat) <= 10 else set()
            members |= {EAST} if 0 <= lon <= 20 and kind == "x" else set()
            found[heard_us] = max(at_us, heard_us - UNDERWAY_US), members
    happened = []
    for at_us, members in found.values():
        last_us = max(last_us, at_us)
        happened.append((last_us, members))
    return happened


@pytest.mark.long
@examples(12)
@given(rngs())
def test_alarms_are_those_of_brute_force_however_reports_are_cut_into_micro_batches(rng):
    with tempfile.TemporaryDirectory() as folder:
        feed = Feed(Path(folder), rng, backlog=rng.random() < 0.3)
        reports = drawn(rng, 40)
        rules = {number: rule(rng) for number in range(10, 16)}
        plans = {query: plan for query, plan in QUERIES.items() if query in (WIDE, NARROW, EAST)} | rules
        control = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans.items()]
        feed.run([], START_US, control)
        end_us = max(reports[-1][0], NINE_US + 61 * SECOND_US) + 30 * SECOND_US
        feed.play(reports, end_us)
        expected = [
            (number, key, *alarm)
            for number, plan in rules.items()
            for key in ("a0", "a1", "a2")
            for alarm in BruteForce(plan, happened_to(key, reports), end_us).alarms
        ]
        assert sorted(feed.told) == sorted(expected)


def alarms(folder, plan, reports, clocks_us):
    """Return the alarms of a rule over `NARROW`: `reports` are pairs of a time and whether it is inside."""
    engine, told = Engine(folder, 1, 2, rescaled=0.0), []

    def run(batch, clock_us, control=()):
        tables = []
        for at_us, inside in batch:
            lon = 0.0 if inside else 40.0
            box = [lon, 0.0, -float("inf"), lon, 0.0, float("inf")]
            tables.append(("a", at_us, box_elements("a", ["ship"], [at_us], [box], [{}])))
        fragments = engine.run(tables, [{"op": "tick", "now_us": clock_us}, *control])
        rows = (row for row in net(fragments).to_pylist() if row["query"] == 10)
        told.extend((row["sign"], row["time_us"] - START_US) for row in rows)

    plans = {NARROW: QUERIES[NARROW], 10: {"stream": "a", "kind": "rule", "when": {"query": NARROW}} | plan}
    control = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans.items()]
    run([], START_US, control)
    reports = [(START_US + at_us, inside) for at_us, inside in reports]
    for clock_us in [START_US + clock_us for clock_us in clocks_us]:
        run([report for report in reports if report[0] <= clock_us], clock_us)
        reports = [report for report in reports if report[0] > clock_us]
    return told


@pytest.mark.parametrize(("left_us", "fires"), [(15_770_000, False), (15_900_000, False), (15_900_001, True)])
def test_an_alarm_begins_no_earlier_than_its_seconds_and_never_ends_as_it_begins(tmp_path, left_us, fires):
    clocks_us = [second * SECOND_US for second in range(1, 22)]
    told = alarms(tmp_path, {"for_s": 10}, [(5_900_000, True), (left_us, False)], clocks_us)
    assert told == ([(ENTERED, 15_900_000), (LEFT, left_us)] if fires else [])


def test_an_object_that_came_and_went_in_one_micro_batch_has_its_alarms(tmp_path):
    reports = [(1_000_000, True), (21_000_000, False), (23_500_000, True)]
    told = alarms(tmp_path, {"for_s": 10}, reports, [43 * SECOND_US, 44 * SECOND_US, 45 * SECOND_US])
    assert told == [(ENTERED, 11_000_000), (LEFT, 21_000_000), (ENTERED, 33_500_000)]


def test_a_schedule_begins_at_its_minute(tmp_path):
    clocks_us = [300_000 + second * SECOND_US for second in range(1, 20, 4)]
    told = alarms(tmp_path, {"for_s": 2, "schedule": OFFICE}, [(1_000_000, True)], clocks_us)
    assert told == [(ENTERED, NINE_US - START_US + 2 * SECOND_US)]

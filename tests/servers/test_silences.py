"""Rules about silence: alarms are those of brute force over all reports, and an outage is not that of each object."""

import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.backtest import BacktestRequest, Playing
from streaming.elements import box_elements, stream_number
from streaming.explaining import ExplanationFacts
from streaming.explaining.rules import rule_term
from streaming.plans import parse_plan
from streaming.results import CANCELLED, ENTERED, LEFT
from streaming.results.netting import net
from streaming.results.rule_clock import RuleClock
from streaming.servers.elements import tracked_schema
from streaming.spaces import EARTH
from tests.servers.harness import Client, Engine
from tests.servers.test_rules import NARROW, QUERIES, START_S, WIDE

SECOND_US = 1_000_000
START_US = START_S * SECOND_US
FEED = ""


def us(seconds):
    return round(seconds * SECOND_US)


def rule(for_s, query=NARROW, expected=(), **more):
    when = {"silent": {"query": query} | ({"expected": list(expected)} if expected else {})}
    return {"stream": "a", "kind": "rule", "when": when, "for_s": for_s, "rearm_s": 0} | more


class Clock:
    """The clock of a stream, by brute force: it stands still a quarter of `for_s` after each report until the next."""

    def __init__(self, heard_us, silent_us):
        self.silent_us = silent_us
        heard = sorted({START_US, *(at for at in heard_us if at > START_US)})
        still = silent_us // 4
        self.heard = heard
        self.runs = [(at, min(at + still, until)) for at, until in zip(heard, [*heard[1:], 10**18], strict=True)]

    def long_us(self, since_us):
        """When an object has been silent for long enough that was heard at a time; None if the clock stands still."""
        left, since_us = self.silent_us, max(since_us, START_US)
        for begin, end in self.runs:
            length = max(0, end - max(begin, since_us))
            if left <= length:
                return max(begin, since_us) + left
            left -= length
        return None

    def alarms(self):
        """The alarms of the stream as a whole."""
        for at, until in zip(self.heard, [*self.heard[1:], None], strict=True):
            if until is None or until - at > self.silent_us:
                yield (ENTERED, at + self.silent_us, at)
                if until is not None:
                    yield (LEFT, until, None)


def brute_force(plan, key, reports):
    """Return the alarms of one rule and one object, or of the whole stream."""
    clock = Clock([heard for heard, *_ in reports], us(plan["for_s"]))
    if key == FEED:
        spans = list(clock.alarms())
    else:
        found = {heard: lon for heard, name, _, lon in reports if name == key}
        spans, times = [], list(found)
        for heard, following in zip(times, [*times[1:], None], strict=True):
            inside = abs(found[heard]) <= (10 if plan["when"]["silent"]["query"] == NARROW else 20)
            long_us = clock.long_us(heard)
            if inside and long_us is not None and (following is None or long_us < following):
                spans.append((ENTERED, long_us, heard))
                spans += [] if following is None else [(LEFT, following, None)]
    told, armed_us = [], 0
    for place in range(0, len(spans), 2):
        began_us, ends = max(spans[place][1], armed_us), spans[place + 1 : place + 2]
        if not ends or began_us < ends[0][1]:
            told += [(ENTERED, began_us, spans[place][2]), *ends]
            armed_us = ends[0][1] + us(plan["rearm_s"]) if ends else 0
    return told


class Feed:
    """Reports, cut at random into micro-batches, through an engine that dies and is cut anew."""

    def __init__(self, folder, rng, backlog, ttl_s):
        self.rng, self.backlog = rng, backlog
        self.engine = Engine(
            folder, 1 if backlog else rng.randint(1, 3), rng.randint(1, 4), saved_every=rng.choice([1, 3])
        )
        self.client, self.told = Client(), []
        self.client.quiet |= {NARROW, *range(10, 20)}
        self.run([], START_US, [{"op": "stream", "stream": "a", "ttl_s": ttl_s}])

    def run(self, reports, clock_us, control=()):
        tables = []
        for heard_us, key, at_us, lon in reports:
            box = [lon, 0.0, -float("inf"), lon, 0.0, float("inf")]
            tables.append(("a", heard_us, box_elements("a", [key], [at_us], [box], [{}])))
        tick = [{"op": "tick", "now_us": clock_us}] if clock_us else []
        fragments = self.engine.run_or_die(tables, [*tick, *control], self.rng, 0.1)
        self.client.receive(fragments)
        for row in net(fragments).to_pylist():
            if row["query"] >= 10:
                self.told.append((row["query"], row["key"], row["sign"], row["time_us"], row["since_us"]))

    def play(self, reports, end_us):
        rng, left, now_us = self.rng, list(reports), START_US
        while left or now_us < end_us:
            now_us += rng.choice([300_000, 700_000, 1_100_000, 15_000_000])
            count = sum(heard_us <= now_us - rng.choice([0, 200_000]) for heard_us, *_ in left)
            if self.backlog and count:
                count = rng.randint(1, count)
            while 0 < count < len(left) and left[count][0] == left[count - 1][0]:
                count += 1
            self.run(left[:count], now_us if rng.random() < 0.7 else None)
            del left[:count]
        for more in range(4):
            self.run([], end_us + (more + 2) * SECOND_US)


def drawn(rng, count):
    """Return reports as they are heard: objects that fall silent, and a feed that now and then has an outage."""
    reports, now_us = [], START_US
    for _ in range(count):
        now_us += us(rng.choice([0.5, 1, 3, 3, 8])) + rng.randrange(3)
        if rng.random() < 0.06:
            now_us += us(rng.choice([12, 30, 70, 130]))
        key = rng.choice(["a0", "a0", "a0", "a1", "a2", "a3"])
        reports.append((now_us, key, now_us - rng.choice([0, 0, 300_000]), rng.choice([0.0, 0.0, 5.0, 15.0, 40.0])))
    return reports


@pytest.mark.long
@pytest.mark.separate_seeds(*range(12))
def test_alarms_about_silence_are_those_of_brute_force_however_reports_are_cut(seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        backlog = rng.random() < 0.3
        feed = Feed(Path(folder), rng, backlog, None if backlog else rng.choice([None, 40]))
        reports = drawn(rng, 60)
        rules = {
            number: rule(for_s, rng.choice([NARROW, WIDE]), rearm_s=rng.choice([0, 0, 30]))
            for number, for_s in enumerate((10, 20, 50, 100), 10)
        }
        plans = {query: QUERIES[query] for query in (WIDE, NARROW)} | rules
        control = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans.items()]
        feed.run([], START_US, control)
        feed.play(reports, reports[-1][0] + us(170))
        expected = [
            (number, key, *alarm)
            for number, plan in rules.items()
            for key in (FEED, "a0", "a1", "a2", "a3")
            for alarm in brute_force(plan, key, reports)
        ]
        assert sorted(feed.told, key=str) == sorted(expected, key=str)


class Fleet:
    """An engine to which reports come second by second."""

    def __init__(self, folder, plan, ttl_s=None, restarts=()):
        self.engine, self.restarts, self.told, self.now_s = Engine(folder, 2, 2, rescaled=0.0), restarts, [], 0
        plans = {NARROW: QUERIES[NARROW], 10: plan}
        control = [{"op": "register", "query": query, "revision": 1, "plan": one} for query, one in plans.items()]
        self.run([], [{"op": "stream", "stream": "a", "ttl_s": ttl_s}, *control])

    def run(self, keys, control=()):
        at_us = START_US + us(self.now_s)
        tables = []
        for key, lon in keys:
            box = [lon, 0.0, -float("inf"), lon, 0.0, float("inf")]
            tables.append(("a", at_us, box_elements("a", [key], [at_us], [box], [{"name": key.upper()}])))
        rows = net(self.engine.run(tables, [{"op": "tick", "now_us": at_us}, *control])).to_pylist()
        self.told += [row for row in rows if row["query"] == 10]
        if self.now_s in self.restarts:
            self.engine.restart()

    def seconds(self, until_s, keys=(), **lons):
        """Have some objects report each second."""
        while self.now_s < until_s:
            self.now_s += 1
            self.run([(key, lons.get(key, 0.0)) for key in keys])

    @property
    def alarms(self):
        return [(row["key"], row["sign"], (row["time_us"] - START_US) // SECOND_US) for row in self.told]


@pytest.mark.parametrize("ttl_s", [None, 5])
def test_an_object_that_falls_silent_has_an_alarm_with_its_last_report_until_it_reports_again(tmp_path, ttl_s):
    fleet = Fleet(tmp_path, rule(20), ttl_s, restarts=(12, 25, 40))
    fleet.seconds(10, ("bus", "tram"), bus=4.0)
    fleet.seconds(50, ("tram",))
    fleet.seconds(55, ("bus", "tram"), bus=40.0)
    assert fleet.alarms == [("bus", ENTERED, 30), ("bus", LEFT, 51)]
    began = fleet.told[0]
    assert (began["since_us"] - START_US, began["properties"]) == (us(10), '{"name":"BUS"}')
    assert began["bounds"][0] == 4.0


def test_an_object_whose_last_report_was_elsewhere_is_not_missed(tmp_path):
    fleet = Fleet(tmp_path, rule(20), 5)
    fleet.seconds(10, ("bus", "tram"))
    fleet.seconds(11, ("bus", "tram"), bus=40.0)
    fleet.seconds(50, ("tram",))
    assert fleet.alarms == []


def test_an_outage_of_the_feed_is_one_alarm_and_none_of_each_object(tmp_path):
    fleet = Fleet(tmp_path, rule(20), 15)
    fleet.seconds(10, ("bus", "tram", "ferry"))
    fleet.seconds(100)
    fleet.seconds(104, ("tram",))
    fleet.seconds(110, ("bus", "tram"))
    fleet.seconds(140, ("bus", "tram"))
    assert fleet.alarms == [(FEED, ENTERED, 30), (FEED, LEFT, 101), ("ferry", ENTERED, 116)]
    assert (fleet.told[0]["since_us"] - START_US, fleet.told[0]["properties"]) == (us(10), '{"stream":"a"}')


def test_an_outage_of_the_gateway_that_sets_the_clock_is_none_of_each_object(tmp_path):
    fleet = Fleet(tmp_path, rule(20))
    fleet.seconds(10, ("bus", "tram", "ferry"))
    fleet.now_s = 500
    fleet.seconds(520, ("bus", "tram", "ferry"))
    assert fleet.alarms == [(FEED, ENTERED, 30), (FEED, LEFT, 501)]


@pytest.mark.parametrize("restarts", [(), (10, 30)])
def test_an_expected_object_that_was_never_heard_has_an_alarm_without_a_last_report(tmp_path, restarts):
    fleet = Fleet(tmp_path, rule(20, expected=["ghost", "tram"]), restarts=restarts)
    fleet.seconds(40, ("tram",))
    fleet.seconds(41, ("ghost", "tram"), ghost=40.0)
    assert fleet.alarms == [("ghost", ENTERED, 20), ("ghost", LEFT, 41)]
    assert [row["since_us"] for row in fleet.told] == [None, None]


def test_alarms_about_silence_are_in_snapshots_and_end_with_their_rule(tmp_path):
    fleet = Fleet(tmp_path, rule(20, expected=["ghost"]), 5)
    fleet.seconds(10, ("bus", "tram"))
    fleet.seconds(40, ("tram",))
    fragments = fleet.engine.run([], [{"op": "snapshot", "query": 10}])
    shown = {row["key"]: row["since_us"] for one in fragments for row in one.snapshots.to_pylist()}
    assert shown == {"bus": START_US + us(10), "ghost": None}
    del fleet.told[:]
    fleet.run([], [{"op": "cancel", "query": 10, "revision": 2}])
    assert sorted((row["key"], row["sign"], row["reason"]) for row in fleet.told) == [
        ("bus", LEFT, CANCELLED),
        ("ghost", LEFT, CANCELLED),
    ]


def test_an_object_that_is_known_when_the_rule_begins_counts_from_then(tmp_path):
    fleet = Fleet(tmp_path, rule(5))
    fleet.seconds(10, ("bus", "tram"))
    fleet.seconds(14, ("tram",))
    fleet.run([], [{"op": "register", "query": 10, "revision": 2, "plan": rule(20)}])
    fleet.seconds(40, ("tram",))
    assert fleet.alarms == [("bus", ENTERED, 34)]
    assert fleet.told[0]["since_us"] == START_US + us(10)


def test_an_explanation_says_when_the_object_was_heard_last_and_where(tmp_path):
    fleet = Fleet(tmp_path, rule(20, expected=["ghost"]), 5)
    fleet.seconds(10, ("bus", "tram"))
    fleet.seconds(11, ("bus", "tram"), tram=40.0)
    told = {}
    for until_s in (15, 35):
        fleet.seconds(until_s, ("ferry",))
        asked = [{"op": "clock", "query": 10, "key": key} for key in ("bus", "tram", "ghost")]
        clocks = [clock for one in fleet.engine.run([], asked) for clock in one.clocks]
        for clock in map(RuleClock.of, clocks):
            known = ExplanationFacts(clock=clock, names={NARROW: "Town"})
            told[clock.key, until_s] = rule_term(parse_plan(rule(20, expected=["ghost"])), None, known)
    assert {name: term.holds for name, term in told.items()} == {
        ("bus", 15): False,
        ("tram", 15): False,
        ("ghost", 15): False,
        ("bus", 35): True,
        ("tram", 35): False,
        ("ghost", 35): True,
    }
    where, silent = told["bus", 15].parts[0].parts
    assert (where.asks, where.holds) == ("its last report was in “Town”", True)
    assert (silent.asks, silent.holds) == ("silent for 20 s", False)
    assert silent.found.startswith("its last report was at 08:00:01 UTC")
    assert told["tram", 35].parts[0].parts[0].holds is False
    assert told["ghost", 35].parts[0].parts[1].found == "it was never heard since the rule began"


def test_a_back_test_tells_the_silences_of_its_span(tmp_path):
    reports = [(second, "tram", 0.0) for second in range(60)] + [
        (second, "bus", 40.0 * (second == 50)) for second in (0, 5, 50)
    ]
    table = pa.concat_tables(
        [
            box_elements("a", [key], [START_US + us(second)], [[lon, 0.0, -1.0, lon, 0.0, 1.0]], [{}])
            .append_column("stream", pa.array([stream_number("a")]))
            .append_column("heard_us", pa.array([START_US + us(second)]))
            .cast(tracked_schema(EARTH))
            for second, key, lon in sorted(reports)
        ]
    )
    plans = {NARROW: QUERIES[NARROW], 10: rule(20, expected=["ghost"])}
    playing = Playing(BacktestRequest(plans, (START_US, START_US + us(90)), {"a": 8.0}))
    rows = [row for played in playing.play([table.combine_chunks()]) for row in played.rows.to_pylist()]
    found = [(row["key"], row["sign"], (row["time_us"] - START_US) / SECOND_US) for row in rows if row["query"] == 10]
    assert found == [
        ("ghost", ENTERED, 20),
        ("bus", ENTERED, 25),
        ("bus", LEFT, 50),
        (FEED, ENTERED, 79),
    ]

"""Rules against an oracle that follows each object by itself, whatever changes meanwhile."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given

from streaming.elements import box_elements
from streaming.plans import parse_plan
from streaming.results import ENTERED, LEFT
from streaming.results.netting import net
from tests.draws import examples, rngs, times
from tests.servers.harness import Client, Engine

SECOND_US = 1_000_000
# A Thursday, shortly before nine in Berlin.
START_S = 1_700_121_590
NINE_S = START_S + 10
WIDE, NARROW, EAST, PAIRS, NEAREST = 1, 2, 3, 4, 5
QUERIES = {
    WIDE: {"stream": "a", "compare": {"lo": [-20, -20], "hi": [20, 20]}},
    NARROW: {"stream": "a", "compare": {"lo": [-10, -10], "hi": [10, 10]}, "emit": "membership"},
    EAST: {"stream": "a", "compare": {"lo": [0, -20], "hi": [20, 20]}, "where": "kind = 'x'"},
    PAIRS: {"stream": "a", "kind": "join", "join": {"stream": "b", "predicate": "dwithin", "distance": 1_000_000}},
    NEAREST: {"stream": "a", "kind": "knn", "k": 3, "around": {"at": [0, 0]}},
}
IN = {
    name: {"query": number}
    for name, number in (("wide", WIDE), ("narrow", NARROW), ("east", EAST), ("pairs", PAIRS), ("nearest", NEAREST))
}
CONDITIONS = [
    IN["wide"],
    IN["narrow"],
    IN["pairs"],
    {"all": [IN["nearest"], IN["wide"]]},
    {"all": [IN["wide"], {"not": IN["narrow"]}]},
    {"any": [IN["narrow"], IN["east"]]},
    {"all": [IN["wide"], {"not": {"any": [IN["east"], IN["pairs"]]}}]},
]
OFFICE = {"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "18:00", "time_zone": "Europe/Berlin"}


def holds(condition, members, stopped=frozenset()):
    """Evaluate a condition for one object, given the queries that it is in, or for whole answers, given their numbers.

    Queries that do not run, and numbers that are None, are unknown: neither True nor False, but None.
    """
    ((operator, value),) = condition.items()
    if operator == "query":
        return None if value in stopped else value in members
    if operator in ("count", "value"):
        number = members[(value["query"], value.get("group", "")) if operator == "value" else value["query"]]
        if number is None:
            return None
        return number < value["below"] if "below" in value else number > value["above"]
    if operator == "not":
        held = holds(value, members, stopped)
        return None if held is None else not held
    found = [holds(part, members, stopped) for part in value]
    decisive = operator == "any"
    if decisive in found:
        return decisive
    return None if None in found else not decisive


@dataclass
class Follower:
    """What a rule knows of one object."""

    since: float | None = None
    alarm: bool = False
    rearmed: float = float("-inf")
    began: list = field(default_factory=list)
    held: bool = False
    deciding: float = 0.0
    due: float = float("inf")
    members: tuple | None = None
    moved: float = float("-inf")


class Oracle:
    """Follows each rule and each object through batches: who is in which answer, and since when."""

    def __init__(self):
        self.rules, self.followers, self.queues = {}, {}, {}

    def put(self, number, plan, now):
        """Begin a rule, or end it with None."""
        self.rules.pop(number, None)
        for name in [name for name in self.followers if name[0] == number]:
            if self.followers.pop(name).alarm:
                self.queues.setdefault(name, []).append((LEFT, now))
        if plan:
            self.rules[number] = plan

    def look(self, histories, now):
        """Return (rule, object, sign, time) that is told.

        `histories` has, by rule and object, what happened since the rules were looked at last: pairs of a time and the
        queries that the object is in from then on, or one pair of None and these queries when nothing happened.
        """
        for (number, key), history in histories.items():
            plan, known = self.rules[number], self.followers.setdefault((number, key), Follower())
            quiet = history[0][0] is None
            history = self.in_order(plan, known, history, now)
            horizons = [*(at for at, _ in history[1:]), now]
            for (at, members), until in zip(history, horizons, strict=True):
                # Where nothing happened, a schedule that begins just now has not yet begun.
                counted = at - 1 if quiet and at == now else at
                known.members, known.moved = members, counted
                told = self.follow(plan, known, members, at, until, counted)
                self.queues.setdefault((number, key), []).extend(told)
        told = []
        for name, queue in self.queues.items():
            count = 2 if queue and queue[0][0] == LEFT else 1
            told += [(*name, *what) for what in queue[:count]]
            del queue[:count]
        return told

    @staticmethod
    def in_order(plan, known, history, now):
        """Return what happens: nothing is earlier than what was before, and the schedule begins at its time."""
        moved, found = known.moved, []
        for at, members in history:
            moved = max(moved, now if at is None else at)
            found.append((moved, members))
        last = known.moved if history[-1][0] is None else moved
        if plan.get("schedule") and known.moved < NINE_S and (now > NINE_S or last >= NINE_S):
            place = sum(at < NINE_S for at, _ in found)
            before = [known.members] if known.moved > float("-inf") else []
            before += [members for _, members in found[:place]]
            found[place:place] = [(NINE_S, members) for members in before[-1:]]
        return found

    def follow(self, plan, known, members, at, now, counted):
        """Yield (sign, time) of one rule and object; it is known what happens before `now`, and if it `counted`."""
        members, stopped = members if isinstance(members, tuple) else (members, frozenset())
        on, rearm = self.counts(plan.get("schedule"), counted), plan.get("rearm_s", 0)
        begins = on and holds(plan["when"], members, stopped) is True
        lasts = on and (begins or ("until" in plan and holds(plan["until"], members, stopped) is True))
        if plan.get("rate"):
            yield from self.rated(plan, known, begins, at)
            return
        if known.alarm:
            if not lasts:
                # Not before its beginning: a partner may move at a clock that is behind the report of the object.
                ended = max(at, known.due)
                known.alarm, known.since, known.rearmed = False, None, ended + rearm
                yield LEFT, ended
        elif known.since is None:
            if begins:
                known.since = at
                known.due = max(at + plan.get("for_s", 0), known.rearmed)
                if known.due <= at or known.due < now:
                    known.alarm = True
                    yield ENTERED, known.due
        elif begins:
            if known.due < now:
                known.alarm = True
                yield ENTERED, known.due
        else:
            if known.due < at:
                yield ENTERED, known.due
            if known.due < at and lasts:
                known.alarm = True
                return
            known.since = None
            if known.due < at:
                yield LEFT, at
                known.rearmed = at + rearm

    def rated(self, plan, known, begins, at):
        """Yield (sign, time) of a rule with a rate: what was due before something happened, then that."""
        while known.due <= at:
            yield from self.rate(plan, known, known.due)
        if begins and not known.held:
            known.began.append(at)
        known.held = begins
        yield from self.rate(plan, known, at)

    def rate(self, plan, known, at):
        """Yield (sign, time) of a rule with a rate at a time."""
        on = self.counts(plan.get("schedule"), at)
        more_than, within = plan["rate"]["more_than"], plan["rate"]["within_s"]
        known.began = sorted(t for t in known.began if t + within > at)
        often = on and len(known.began) > more_than
        if known.alarm and not often:
            ended = min(known.deciding + within, at)
            known.alarm, known.rearmed = False, ended + plan.get("rearm_s", 0)
            yield LEFT, ended
        known.due = known.began[-1] + within if known.began else float("inf")
        if often:
            known.deciding = known.began[-1 - more_than]
            known.due = known.deciding + within
            if not known.alarm and known.rearmed <= max(at, known.began[-1]):
                known.alarm = True
                yield ENTERED, known.began[-1]
            elif not known.alarm:
                known.due = min(known.due, known.rearmed)

    @staticmethod
    def counts(schedule, now):
        """Nine in Berlin is ten seconds after the start."""
        return schedule is None or now >= NINE_S


class History:
    """A random history of reports, of rules that begin, change and end, and of queries that do."""

    def __init__(self, folder, rng):
        self.rng = rng
        self.engine = Engine(folder, rng.randint(1, 3), rng.randint(1, 4), saved_every=rng.choice([1, 3]))
        self.client, self.oracle = Client(), Oracle()
        self.client.quiet |= {NARROW, *range(10, 30)}
        self.now, self.fixes, self.feeds = START_S, {}, {}
        # The clock, what it was when rules were looked at, and what happened to objects since then.
        self.clock, self.looked, self.happened = 0, 0, []
        self.running = frozenset()
        self.revision = 0

    def play(self, batches):
        for number in batches:
            self.batch(number)

    def batch(self, number):
        rng, control = self.rng, []
        self.now += rng.choice([2, 4, 4, 7])
        clock = self.clock
        if number == 0 or rng.random() < 0.6:
            self.clock = self.now
            control.append({"op": "tick", "now_us": self.now * SECOND_US})
        begun, ruled = set(), bool(self.oracle.rules)
        for rule in range(10, 16):
            if rng.random() < (0.9 if number == 1 else 0.03):
                plan = self.rule() if rule not in self.oracle.rules or rng.random() < 0.7 else None
                self.oracle.put(rule, plan, self.clock)
                control.append(self.entry(rule, plan))
                begun |= {rule} if plan else set()
        quiet = number < 2 or rng.random() < 0.1
        for query, plan in QUERIES.items() if quiet else ():
            if number == 0 or rng.random() < 0.3:
                ends = number > 1 and query in self.feeds and rng.random() < 0.5
                self.feeds.pop(query, None)
                if not ends:
                    self.feeds[query] = plan
                control.append(self.entry(query, None if ends else plan))
        before = self.members(), self.running
        self.running = frozenset(self.feeds)
        tables = [] if quiet and number else [self.reports("ab"[number % 2])]
        fragments = self.engine.run_or_die(tables, control, rng, 0.2)
        self.client.receive(fragments)
        reported = {key for _, _, table in tables for key in table["key"].to_pylist()}
        after = self.members(), self.running
        self.happened.append((before, after, dict(self.fixes), reported, self.now, clock or self.clock))
        expected = []
        if any("entries" in fragment.counters for fragment in fragments):
            expected = self.oracle.look(self.histories(begun, self.looked if ruled else self.clock), self.clock - 1)
            self.looked, self.happened = self.clock, []
        rows = net(fragments).to_pylist()
        found = [
            (row["query"], row["key"], row["sign"], row["time_us"] / SECOND_US) for row in rows if row["query"] > 9
        ]
        assert sorted(found) == sorted(expected), number

    def histories(self, begun, since):
        """What happened to each object, for each rule; an object to which nothing did is looked at now."""
        (after, running), found = self.happened[-1][1], {}
        keys = {
            key for (known, _), *_ in (step[:2] for step in self.happened) for some in known.values() for key in some
        }
        keys |= {key for some in after.values() for key in some}
        for rule, plan in self.oracle.rules.items():
            queries = set(parse_plan(plan).queries)
            for key in keys | {key for number, key in self.oracle.followers if number == rule}:
                history = []
                for (was, ran), (now, runs), fixes, *when in self.happened:
                    turned = [query for query in queries if (key in was[query]) != (key in now[query])]
                    times = [max(fixes[key], self.least(key, query, since, *when)) for query in turned]
                    times += [since] if queries & (ran ^ runs) else []
                    if times:
                        history.append(
                            (max(times), ({query for query in queries if key in now[query]}, queries - runs))
                        )
                present = {query for query in queries if key in after[query]}, queries - running
                if rule in begun:
                    history = [(max(self.fixes[key], since), present)]
                found[rule, key] = history or [(None, present)]
        return found

    @staticmethod
    def least(key, query, since, reported, heard, clock):
        """When an object enters or leaves at the earliest: when it was heard, or else the clock."""
        if query == NEAREST:
            return since
        return heard - 0.5 if key in reported else clock

    def members(self):
        """Who is in which answer."""
        return {
            query: {key if isinstance(key, str) else key[0] for key in self.client.answers[query]} for query in QUERIES
        }

    def rule(self):
        rng = self.rng
        plan = {"stream": "a", "kind": "rule", "when": rng.choice(CONDITIONS)}
        if rng.random() < 0.3:
            plan["rate"] = {"more_than": rng.randint(1, 2), "within_s": rng.choice([20, 40])}
        else:
            plan["for_s"] = rng.choice([0, 0, 5, 12])
            if rng.random() < 0.3:
                plan["until"] = IN["wide"]
        if rng.random() < 0.4:
            plan["rearm_s"] = rng.choice([10, 30])
        if rng.random() < 0.3:
            plan["schedule"] = OFFICE
        return plan

    def entry(self, query, plan):
        self.revision += 1
        entry = {"query": query, "revision": self.revision}
        return entry | ({"op": "register", "plan": plan} if plan else {"op": "cancel"})

    def reports(self, stream):
        rng, keys = self.rng, [f"{stream}{number}" for number in range(8)]
        keys = rng.sample(keys, rng.randint(1, 6))
        times, boxes = [], []
        for key in keys:
            self.fixes[key] = self.now - rng.choice([0, 0, 1, 3])
            times.append(self.fixes[key] * SECOND_US)
            x, y = rng.uniform(-30, 30), rng.uniform(-15, 15)
            boxes.append([x, y, -float("inf"), x, y, float("inf")])
        table = box_elements(stream, keys, times, boxes, [{"kind": rng.choice("xy")} for _ in keys])
        return stream, self.now * SECOND_US, table


@pytest.mark.long
@examples(6)
@given(rngs())
def test_rules_agree_with_following_each_object_by_itself(rng):
    with tempfile.TemporaryDirectory() as folder:
        History(Path(folder), rng).play(times(rng, 60))


def test_an_alarm_by_a_rate_ends_although_its_object_is_gone_by_then(tmp_path):
    engine, client = Engine(tmp_path, 1, 2, rescaled=0.0), Client()
    client.quiet |= {NARROW, 10}

    def run(second, *places, control=()):
        boxes = [[x, 0.0, -float("inf"), x, 0.0, float("inf")] for x in places]
        told = [("a", second * SECOND_US, box_elements("a", ["ship"], [second * SECOND_US], [b], [{}])) for b in boxes]
        tick = {"op": "tick", "now_us": second * SECOND_US}
        client.receive(fragments := engine.run(told, [tick, *control]))
        rows = [row for row in net(fragments).to_pylist() if row["query"] == 10]
        assert not rows or {row["key"] for row in rows} == {"ship"}
        return [(row["sign"], row["time_us"] // SECOND_US) for row in rows]

    plan = {"stream": "a", "kind": "rule", "when": IN["narrow"], "rate": {"more_than": 1, "within_s": 60}}
    plans = [(NARROW, QUERIES[NARROW]), (10, plan)]
    control = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans]
    assert run(100, 0.0, control=[{"op": "stream", "stream": "a", "ttl_s": 5}, *control]) == []
    assert run(102, 50.0) == []
    assert run(104, 0.0) == [(ENTERED, 104)]
    assert run(120) == []  # the ship is gone
    run(121, control=[{"op": "snapshot", "query": 10}])
    assert run(159) == []
    assert run(161) == [(LEFT, 160)]

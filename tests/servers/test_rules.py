"""Rules against an oracle that follows each object by itself, whatever changes meanwhile."""

import random
from dataclasses import dataclass, field

import pytest

from streaming.elements import box_elements
from streaming.plans import parse_plan
from streaming.results import ENTERED, LEFT
from streaming.results.netting import net
from tests.servers.harness import Client, Engine

SECOND_US = 1_000_000
# A Thursday, shortly before nine in Berlin.
START_S = 1_700_121_590
WIDE, NARROW, EAST, PAIRS = 1, 2, 3, 4
QUERIES = {
    WIDE: {"stream": "a", "compare": {"lo": [-20, -20], "hi": [20, 20]}},
    NARROW: {"stream": "a", "compare": {"lo": [-10, -10], "hi": [10, 10]}, "emit": "membership"},
    EAST: {"stream": "a", "compare": {"lo": [0, -20], "hi": [20, 20]}, "where": "kind = 'x'"},
    PAIRS: {"stream": "a", "kind": "join", "join": {"stream": "b", "predicate": "dwithin", "distance": 1_000_000}},
}
IN = {
    name: {"query": number} for name, number in (("wide", WIDE), ("narrow", NARROW), ("east", EAST), ("pairs", PAIRS))
}
CONDITIONS = [
    IN["wide"],
    IN["narrow"],
    IN["pairs"],
    {"all": [IN["wide"], {"not": IN["narrow"]}]},
    {"any": [IN["narrow"], IN["east"]]},
    {"all": [IN["wide"], {"not": {"any": [IN["east"], IN["pairs"]]}}]},
]
OFFICE = {"days": ["mon", "tue", "wed", "thu", "fri"], "from": "09:00", "to": "18:00", "time_zone": "Europe/Berlin"}


def holds(condition, members):
    """Evaluate a condition for one object, given the queries that it is in."""
    ((operator, value),) = condition.items()
    if operator == "query":
        return value in members
    if operator == "not":
        return not holds(value, members)
    return (all if operator == "all" else any)(holds(part, members) for part in value)


@dataclass
class Follower:
    """What a rule knows of one object."""

    since: float | None = None
    alarm: bool = False
    over: float | None = None
    rearmed: float = float("-inf")
    began: list = field(default_factory=list)
    held: bool = False
    deciding: float = 0.0


class Oracle:
    """Follows each rule and each object through batches: who is in which answer, and since when."""

    def __init__(self):
        self.rules, self.followers = {}, {}

    def put(self, number, plan, now):
        """Begin a rule, or end it with None; return (rule, object, sign, time)."""
        self.rules.pop(number, None)
        mine = [(key, known) for (rule, key), known in self.followers.items() if rule == number]
        told = [(number, key, LEFT, now) for key, known in mine if known.alarm]
        told += [(number, key, LEFT, known.over) for key, known in mine if known.over is not None]
        self.followers = {name: known for name, known in self.followers.items() if name[0] != number}
        if plan:
            self.rules[number] = plan
        return told

    def batch(self, answers, times, now):
        """Return (rule, object, sign, time) of a batch, given the answers after it and when objects changed."""
        told = []
        keys = {key for members in answers.values() for key in members} | {key for _, key in self.followers}
        for number, plan in self.rules.items():
            for key in sorted(keys):
                members = {query for query, some in answers.items() if key in some}
                known = self.followers.setdefault((number, key), Follower())
                at = times.get((number, key), now)
                told += [(number, key, *what) for what in self.follow(plan, known, members, at, now)]
        return told

    def follow(self, plan, known, members, at, now):
        """Yield (sign, time) of one rule and object."""
        if known.over is not None:
            yield LEFT, known.over
            known.over = None
        on = self.counts(plan.get("schedule"), now)
        begins = on and holds(plan["when"], members)
        lasts = on and (begins or ("until" in plan and holds(plan["until"], members)))
        if plan.get("rate"):
            yield from self.rated(plan, known, begins, on, at, now)
            return
        rearm = plan.get("rearm_s", 0)
        if known.alarm:
            if not lasts:
                known.alarm, known.since, known.rearmed = False, None, at + rearm
                yield LEFT, at
        elif known.since is None:
            if begins:
                known.since = at
                known.due = max(at + plan.get("for_s", 0), known.rearmed)
                if known.due <= max(at, now):
                    known.alarm = True
                    yield ENTERED, known.due
        elif begins:
            if known.due <= now:
                known.alarm = True
                yield ENTERED, known.due
        else:
            known.since = None
            if known.due <= at:
                yield ENTERED, known.due
                known.over, known.rearmed = at, at + rearm

    def rated(self, plan, known, begins, on, at, now):
        """Yield (sign, time) of a rule with a rate."""
        more_than, within = plan["rate"]["more_than"], plan["rate"]["within_s"]
        if begins and not known.held:
            known.began.append(at)
        known.held = begins
        known.began = sorted(t for t in known.began if t + within > max(now, at if t == at else now))
        often = on and len(known.began) > more_than
        if known.alarm and not often:
            ended = min(known.deciding + within, now)
            known.alarm, known.rearmed = False, ended + plan.get("rearm_s", 0)
            yield LEFT, ended
        elif often:
            known.deciding = known.began[-1 - more_than]
            newest = known.began[-1]
            if not known.alarm and known.rearmed <= max(now, newest):
                known.alarm = True
                yield ENTERED, newest

    @staticmethod
    def counts(schedule, now):
        """Nine in Berlin is ten seconds after the start."""
        return schedule is None or now >= START_S + 10


class History:
    """A random history of reports, of rules that begin, change and end, and of queries that do."""

    def __init__(self, folder, seed):
        self.rng = random.Random(seed)
        self.engine = Engine(
            folder, self.rng.randint(1, 3), self.rng.randint(1, 4), saved_every=self.rng.choice([1, 3])
        )
        self.client, self.oracle = Client(), Oracle()
        self.client.quiet |= {NARROW, *range(10, 30)}
        self.now, self.fixes, self.feeds = START_S, {}, {}
        self.revision = 0

    def play(self, batches):
        for number in range(batches):
            self.batch(number)

    def batch(self, number):
        rng, was = self.rng, self.now
        self.now += rng.choice([4, 4, 5, 7])
        since = was if self.oracle.rules else self.now
        control = [{"op": "tick", "now_us": self.now * SECOND_US}]
        begun, told = set(), []
        for rule in range(10, 16):
            if rng.random() < (0.9 if number == 1 else 0.03):
                plan = self.rule() if rule not in self.oracle.rules or rng.random() < 0.7 else None
                told += self.oracle.put(rule, plan, self.now)
                control.append(self.entry(rule, plan))
                if plan:
                    begun.add(rule)
        quiet = number < 2 or rng.random() < 0.1
        for query, plan in QUERIES.items() if quiet else ():
            if number == 0 or rng.random() < 0.3:
                ends = number > 1 and query in self.feeds and rng.random() < 0.5
                self.feeds.pop(query, None)
                if not ends:
                    self.feeds[query] = plan
                control.append(self.entry(query, None if ends else plan))
        before = {query: set(some) for query, some in self.members().items()}
        tables = [] if quiet and number else [self.reports("ab"[number % 2])]
        fragments = self.engine.run_or_die(tables, control, rng, 0.2)
        self.client.receive(fragments)
        after = self.members()
        times = {key: max(self.fixes[key], since) for some in (*before.values(), *after.values()) for key in some}
        expected = told + self.follow(before, after, times, begun)
        rows = net(fragments).to_pylist()
        found = [
            (row["query"], row["key"], row["sign"], row["time_us"] / SECOND_US) for row in rows if row["query"] >= 10
        ]
        assert sorted(found) == sorted(expected), number

    def follow(self, before, after, times, begun):
        """What the oracle tells; an object of which nothing changed is looked at now, as its time comes."""
        wanted = {}
        for rule, plan in self.oracle.rules.items():
            queries = parse_plan(plan).queries
            for key, at in times.items():
                changed = any((key in before[query]) != (key in after[query]) for query in queries)
                wanted[rule, key] = at if changed or rule in begun else self.now
        return self.oracle.batch(after, wanted, self.now)

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


@pytest.mark.parametrize("seed", [2, 5, 9])
def test_rules_agree_with_following_each_object_by_itself(tmp_path, seed):
    History(tmp_path, seed).play(40)

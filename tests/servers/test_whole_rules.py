"""Rules about whole answers, compared with counting all objects again for each second, however the reports are cut."""

import random

import pytest

from streaming.elements import box_elements, key_hashes, partition_of
from streaming.operators.comparison import Comparison
from streaming.results import ENTERED, LEFT
from streaming.results.netting import net
from tests.servers.harness import Client, Engine
from tests.servers.test_rules import OFFICE, SECOND_US, START_S, Oracle, holds

TTL_S = 9
BOXES = {1: (-20, 20), 2: (-10, 10), 3: (0, 20)}
PAIRS, MEAN, TOTAL, FASTEST, CROWD = range(4, 9)
AGGREGATES = {
    MEAN: {"function": "avg", "property": "speed"},
    TOTAL: {"function": "sum", "property": "speed", "group_by": "kind"},
    FASTEST: {"function": "max", "property": "speed"},
    CROWD: {"function": "count", "group_by": "kind"},
}
FUNCTIONS = {
    "avg": lambda speeds: sum(speeds) / len(speeds) if speeds else None,
    "min": lambda speeds: min(speeds, default=None),
    "max": lambda speeds: max(speeds, default=None),
    "sum": sum,
}
JOIN = {"stream": "b", "predicate": "dwithin", "distance": 1_000_000}


def count(query, **limit):
    return {"count": {"query": query} | limit}


def value(query, **limit):
    return {"value": {"query": query} | limit}


CONDITIONS = [
    count(1, below=1),
    count(1, below=3),
    count(2, above=0),
    count(PAIRS, below=2),
    {"all": [count(1, above=1), {"not": count(2, above=1)}]},
    {"any": [count(3, below=1), count(PAIRS, above=3)]},
    {"not": {"all": [count(1, above=0), count(1, below=4)]}},
    value(MEAN, below=4.5),
    {"not": value(MEAN, below=5)},
    value(TOTAL, above=6, group="x"),
    value(CROWD, below=1, group="y"),
    {"any": [value(FASTEST, above=7), count(2, below=2)]},
    {"all": [value(MEAN, above=2), {"not": value(FASTEST, above=8)}]},
]
VALUES = [value(query, below=2) for query in (MEAN, FASTEST)]
VALUES += [value(query, below=2, group=group) for query in (TOTAL, CROWD) for group in "xy"]
# They count all answers from the beginning on.
ALWAYS = {"stream": "a", "kind": "rule", "when": {"all": [count(query, below=2) for query in (*BOXES, PAIRS)]}}
ALWAYS_VALUES = {"stream": "a", "kind": "rule", "when": {"all": VALUES}}


def terms(condition):
    """Return the counts of which a condition consists."""
    ((operator, value),) = condition.items()
    if operator in ("count", "value"):
        return [condition]
    return terms(value) if operator == "not" else [term for part in value for term in terms(part)]


class History:
    """Random reports, cut at random into micro-batches; rules and queries that begin, change and end; restarts."""

    def __init__(self, folder, seed):
        self.rng = rng = random.Random(seed)
        self.engine = Engine(folder, rng.randint(1, 3), rng.randint(1, 4), saved_every=rng.choice([1, 3]))
        self.client, self.oracle = Client(), Oracle()
        self.phase_us = rng.randrange(1, SECOND_US)
        # When objects were heard last and where, the longitudes of queries, and the counts at the ends of seconds, by
        # the time of that.
        self.fixes, self.boxes, self.counts = {}, dict.fromkeys([*BOXES, *AGGREGATES]), {}
        self.running, self.functions = set(), {query: one["function"] for query, one in AGGREGATES.items()}
        self.decided_us, self.begun, self.told, self.revision = 0, {}, 0, 0
        self.clock_us, self.put = 0, {}

    def play(self, seconds):
        # Nothing but what objects of stream a do changes the pairs: the others stay.
        streams = [{"op": "stream", "stream": stream, "ttl_s": ttl_s} for stream, ttl_s in (("a", TTL_S), ("b", 1000))]
        tick = {"op": "tick", "now_us": START_S * SECOND_US + self.phase_us}
        nothing = dict.fromkeys([*BOXES, PAIRS], 0) | self.values([])
        self.counts = dict.fromkeys(range(START_S - 3, START_S + 2), nothing)
        self.before_us = self.decided_us = tick["now_us"] - SECOND_US
        control = [tick, *streams, *map(self.query, [*BOXES, PAIRS, *AGGREGATES])]
        rules = {10: ALWAYS, 9: ALWAYS_VALUES} | {number: self.plan() for number in range(11, 15)}
        self.run([], [*control, *(self.rule(number, plan) for number, plan in rules.items())])
        self.run([(tick["now_us"], "b0", -3.0, 1, "x"), (tick["now_us"], "b1", 4.0, 1, "x")], [])
        for second in range(START_S + 1, START_S + seconds):
            self.second(second)

    def second(self, second):
        """Play one second: what is heard before the tick is read with it at the latest, and the rest after it."""
        rng, reports, tick = (
            self.rng,
            self.reports(second),
            {"op": "tick", "now_us": second * SECOND_US + self.phase_us},
        )
        early = [report for report in reports if report[0] <= tick["now_us"]]
        late = [report for report in reports if report[0] > tick["now_us"]]
        cut = rng.randint(0, len(early))
        self.run(early[:cut], [])
        self.run(early[cut:], [tick])
        if rng.random() < 0.3:
            self.run([], self.edits(second))
        if rng.random() < 0.3:  # the client compares it with what was told
            self.run([], [{"op": "snapshot", "query": query} for query in self.oracle.rules])
        cut = rng.randint(0, len(late))
        self.run(late[:cut], [])
        self.run(late[cut:], [])
        self.counts[second + 1] = self.counted(second)

    def decide(self, reports, control):
        """Note before when it is decided, given what a micro-batch has: a second before what has been read."""
        self.clock_us = max([self.clock_us, *(entry["now_us"] for entry in control if entry["op"] == "tick")])
        newest = {}
        for heard_us, key, *_ in reports:
            home = int(partition_of(key_hashes(key[0], [key]), self.engine.layout.partitions)[0])
            newest[home] = heard_us
        self.decided_us = max(self.decided_us, min([self.clock_us, *newest.values()]) - SECOND_US)

    def edits(self, second):
        """Return control entries that change some rule, and some query that it watches."""
        rng, control = self.rng, []
        if rng.random() < 0.7:
            query = rng.choice([*BOXES, PAIRS, *AGGREGATES])
            stops = query in self.running and rng.random() < 0.4
            if query != PAIRS or stops or query not in self.running:
                control.append(self.stop(query) if stops else self.query(query))
        number = rng.randint(11, 15)
        ends = number in self.oracle.rules and rng.random() < 0.3
        return [*control, self.rule(number, None if ends else self.plan())]

    def query(self, number):
        """Return the control entry of a query, with another range if it was there."""
        self.running.add(number)
        if number == PAIRS:
            return self.entry(PAIRS, {"stream": "a", "kind": "join", "join": JOIN})
        first = self.boxes[number] is None
        west, east = BOXES.get(number, (-15, 25)) if first else sorted(self.rng.sample(range(-30, 30), 2))
        self.boxes[number] = west, east
        plan = {"stream": "a", "compare": {"lo": [west, -90], "hi": [east, 90]}}
        if number in AGGREGATES:
            if self.functions[number] != "count" and not first:
                self.functions[number] = self.rng.choice([*FUNCTIONS])
            plan["aggregate"] = AGGREGATES[number] | {"function": self.functions[number]}
        return self.entry(number, plan)

    def stop(self, number):
        self.running.remove(number)
        return self.entry(number, None)

    def rule(self, number, plan):
        self.put[number] = plan
        return self.entry(number, plan)

    def entry(self, query, plan):
        self.revision += 1
        entry = {"query": query, "revision": self.revision}
        return entry | ({"op": "register", "plan": plan} if plan else {"op": "cancel"})

    def plan(self):
        rng = self.rng
        plan = {"stream": "a", "kind": "rule", "when": rng.choice(CONDITIONS)}
        if rng.random() < 0.3:
            plan["rate"] = {"more_than": rng.randint(1, 2), "within_s": rng.choice([10, 20])}
        else:
            plan["for_s"] = rng.choice([0, 0, 2, 5])
            if rng.random() < 0.4:
                plan["until"] = rng.choice([count(1, below=4), count(2, above=1), value(MEAN, below=6)])
        if rng.random() < 0.4:
            plan["rearm_s"] = rng.choice([3, 8])
        if rng.random() < 0.3:
            plan["schedule"] = OFFICE
        return plan

    def reports(self, second):
        """Return reports of a second in the order in which they are heard, some objects more than once."""
        rng, busy = self.rng, self.rng.choice([0.02, 0.3])
        # An object that comes back within the second in which it is given up may, or may not, have left.
        sure = [key for key in (f"a{n}" for n in range(6)) if abs(second - TTL_S - self.heard_s(key)) > 1]
        keys = [key for key in sure for _ in range(rng.randint(1, 2)) if rng.random() < busy]
        moments = sorted(rng.sample(range(SECOND_US), len(keys)))
        rng.shuffle(keys)
        return [
            (second * SECOND_US + at, key, rng.uniform(-30, 30), rng.choice([None, *range(10)]), rng.choice("xy"))
            for at, key in zip(moments, keys, strict=True)
        ]

    def heard_s(self, key):
        """When an object was heard last, in seconds."""
        return self.fixes[key][0] // SECOND_US if key in self.fixes else 0

    def counted(self, second):
        """Return the numbers of all answers at the end of a second; None of queries that do not run."""
        theirs = [lon for key, (_, lon, *_) in self.fixes.items() if key[0] == "b"]
        ours = [
            fix
            for key, (heard_us, *fix) in self.fixes.items()
            if key[0] == "a" and heard_us // SECOND_US + TTL_S > second
        ]
        counts = {query: sum(self.within(query, lon) for lon, *_ in ours) for query in BOXES}
        near = 1_000_000 / 111_319.49
        counts[PAIRS] = sum(any(abs(lon - other) <= near for other in theirs) for lon, *_ in ours)
        found = counts | self.values(ours)
        return {
            name: number if (name[0] if isinstance(name, tuple) else name) in self.running else None
            for name, number in found.items()
        }

    def within(self, query, lon):
        west, east = self.boxes[query]
        return west <= lon <= east

    def values(self, ours):
        """Return the values of aggregates, by query and group."""
        found = {}
        for query, aggregate in AGGREGATES.items():
            for group in "xy" if "group_by" in aggregate else [""]:
                here = [speed for lon, speed, kind in ours if self.within(query, lon) and (not group or kind == group)]
                speeds = [float(speed) for speed in here if speed is not None]
                function = self.functions[query]
                found[query, group] = float(len(here)) if function == "count" else FUNCTIONS[function](speeds)
        return found

    def run(self, reports, control):
        tables = []
        for heard_us, key, lon, speed, kind in reports:
            self.fixes[key] = heard_us, lon, speed, kind
            box = [lon, 0.0, -float("inf"), lon, 0.0, float("inf")]
            properties = {"kind": kind} | ({} if speed is None else {"speed": speed})
            tables.append((key[0], heard_us, box_elements(key[0], [key], [heard_us], [box], [properties])))
        fragments = self.engine.run_or_die(tables, control, self.rng, 0.1)
        looks = any("entries" in fragment.counters for fragment in fragments)
        if looks:
            self.decide(reports, control)
        for number, plan in self.put.items():
            self.oracle.put(number, plan, self.decided_us / SECOND_US)
            self.begun[number] = self.decided_us // SECOND_US
        self.put = {}
        self.client.receive(fragments)
        rows = [row for row in net(fragments).to_pylist() if row["query"] >= 9]
        found = [(row["query"], row["key"], row["sign"], row["time_us"] / SECOND_US) for row in rows]
        expected = []
        if looks:
            expected = self.oracle.look(self.histories(), self.decided_us / SECOND_US)
            self.before_us, self.begun = self.decided_us, {}
        assert sorted(found) == sorted(expected), (control, self.decided_us, self.oracle.rules)
        self.told += len(found)

    def histories(self):
        """Return what happened to the counts of each rule in the seconds that are decided by now."""
        found = {}
        for rule, plan in self.oracle.rules.items():
            named = terms(plan["when"]) + (terms(plan["until"]) if "until" in plan else [])
            # The numbers of a second are known if it ends before what is decided.
            first, last = (-(-at_us // SECOND_US) for at_us in (self.before_us, self.decided_us))
            if rule in self.begun:
                found[rule, ""] = [(self.begun[rule], self.counts[last - 1])]
                continue
            history = []
            for second in range(first, last):
                were, are = self.counts[second - 1], self.counts[second]
                if [holds(term, were) for term in named] != [holds(term, are) for term in named]:
                    history.append((second, are))
            found[rule, ""] = history or [(self.decided_us / SECOND_US, self.counts[last - 1])]
        return found


@pytest.mark.long
@pytest.mark.separate_seeds(0, 3, 11, 15)
def test_rules_about_whole_answers_agree_with_counting_again_each_second(tmp_path, seed):
    history = History(tmp_path, seed)
    history.play(45)
    assert history.told > 5


def test_an_answer_that_is_counted_first_counts_with_the_objects_in_it(tmp_path):
    engine, client = Engine(tmp_path, 2, 2), Client()

    def run(second, *keys, control=()):
        boxes = [[0.0, 0.0, -float("inf"), 0.0, 0.0, float("inf")]] * len(keys)
        at = second * SECOND_US
        tables = [("a", at, box_elements("a", list(keys), [at] * len(keys), boxes, [{}] * len(keys)))] if keys else []
        client.receive(fragments := engine.run(tables, [{"op": "tick", "now_us": at + 600_000}, *control]))
        return [
            (row["sign"], row["key"], row["time_us"] // SECOND_US)
            for row in net(fragments).to_pylist()
            if row["query"] == 10
        ]

    box = {"stream": "a", "compare": {"lo": [-1, -1], "hi": [1, 1]}}
    register = {"op": "register", "revision": 1}
    run(100, "x", "y", control=[{"op": "stream", "stream": "a", "ttl_s": 5}, register | {"query": 1, "plan": box}])
    rule = {"stream": "a", "kind": "rule", "when": count(1, below=2), "for_s": 2}
    assert run(101, control=[register | {"query": 10, "plan": rule}]) == []
    assert run(104, "x") == []
    engine.restart()
    assert run(106) == []  # y is gone since 105
    assert run(107, control=[{"op": "snapshot", "query": 10}]) == []
    assert run(108, control=[{"op": "snapshot", "query": 10}]) == [(ENTERED, "", 107)]
    assert run(109, "x", "y") == []
    assert run(110) == [(LEFT, "", 109)]


def test_the_place_of_a_query_counts_as_no_member(tmp_path):
    engine, client = Engine(tmp_path, 2, 2), Client()

    def run(second, *keys, control=()):
        boxes = [[0.01 * n, 0.0, -float("inf"), 0.01 * n, 0.0, float("inf")] for n in range(len(keys))]
        at = second * SECOND_US
        tables = [("a", at, box_elements("a", list(keys), [at] * len(keys), boxes, [{}] * len(keys)))] if keys else []
        client.receive(fragments := engine.run(tables, [{"op": "tick", "now_us": at + 600_000}, *control]))
        return [(row["sign"], row["key"]) for row in net(fragments).to_pylist() if row["query"] >= 10]

    around = {"stream": "a", "key": "x"}
    nearest = {"stream": "a", "kind": "knn", "around": around, "k": 5}
    near = {"stream": "a", "around": around | {"radius": 5000}}
    register = {"op": "register", "revision": 1}
    run(100, "x", "y", control=[register | {"query": 1, "plan": nearest}, register | {"query": 2, "plan": near}])
    rules = [
        {"stream": "a", "kind": "rule", "when": count(1, above=1)},
        {"stream": "a", "kind": "rule", "when": count(2, above=1)},
        {"stream": "a", "kind": "rule", "when": {"query": 2}},
    ]
    control = [register | {"query": 10 + n, "plan": plan} for n, plan in enumerate(rules)]
    told = run(101, control=control)
    for second in (102, 103, 104):
        told += run(second, "x", "y")
    assert told == [(ENTERED, "y")]


def test_a_query_that_fails_is_not_known_until_it_is_answered_again(tmp_path, monkeypatch):
    """Neither its empty answer nor its missing objects count as such, in whichever region it failed."""
    failing, measured = [False], Comparison.judged

    def judged(comparison, *told):
        if failing[0] and comparison.predicate == "touches":
            raise ValueError("broken")
        return measured(comparison, *told)

    monkeypatch.setattr(Comparison, "judged", judged)
    engine, client = Engine(tmp_path, 2, 2), Client()
    engine.may_fail = True

    def run(second, x=None, control=()):
        at = second * SECOND_US
        box = [x, 0.0, -float("inf"), x, 0.0, float("inf")]
        tables = [] if x is None else [("a", at, box_elements("a", ["x"], [at], [box], [{}]))]
        client.receive(fragments := engine.run(tables, [{"op": "tick", "now_us": at + 600_000}, *control]))
        rows = net(fragments).to_pylist()
        return [(row["query"], row["sign"], row["time_us"] // SECOND_US) for row in rows if row["query"] >= 10]

    join = {"stream": "a", "kind": "join", "join": {"stream": "b", "predicate": "touches"}}
    absent = {"stream": "a", "kind": "rule", "when": {"all": [{"query": 1}, {"not": {"query": 2}}]}}
    empty = {"stream": "a", "kind": "rule", "when": count(2, below=1)}
    plans = {1: {"stream": "a"} | {"compare": {"lo": [-50, -50], "hi": [50, 50]}}, 2: join, 10: absent, 11: empty}
    # What is within it does not touch it, but the predicate has to be evaluated.
    b = box_elements("b", ["y"], [100 * SECOND_US], [[-9.0, -9.0, -float("inf"), 9.0, 9.0, float("inf")]], [{}])
    engine.run([("b", 100 * SECOND_US, b)], [{"op": "tick", "now_us": 100 * SECOND_US}])
    failing[0] = True
    register = {"op": "register", "revision": 1}
    told = run(101, 1.0, [register | {"query": query, "plan": plan} for query, plan in plans.items()])
    for second in (102, 103):
        told += run(second, 1.0 + second / 1000)
    assert told == []
    failing[0] = False
    told = [one for second in range(104, 112) for one in run(second, 1.0 + second / 1000)]
    assert [(query, sign) for query, sign, _ in sorted(told)] == [(10, ENTERED), (11, ENTERED)]
    failing[0] = True
    told = [one for second in range(112, 116) for one in run(second, 1.0 + second / 1000)]
    assert [(query, sign) for query, sign, _ in sorted(told)] == [(10, LEFT), (11, LEFT)]

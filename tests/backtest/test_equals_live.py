"""A back-test of what was stored tells what the live engine told, whatever the reports, and however it was cut."""

import random

import pytest

from streaming.backtest import BacktestRequest, Playing, StoredElements
from streaming.elements import box_elements
from streaming.history import History
from streaming.results import ENTERED, LEFT
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests.servers.harness import Engine

US = 1_000_000
# A Thursday, shortly before nine in Berlin.
START_S = 1_700_121_590
TTL_S = 20.0
OFFICE = {"from": "09:00", "to": "09:01", "time_zone": "Europe/Berlin"}
IN_WIDE, IN_NARROW, IN_EAST = ({"query": number} for number in (1, 2, 3))


def count(query, **limit):
    """The condition that an answer has fewer or more objects than a limit."""
    return {"count": {"query": query} | limit}


PLANS = {
    1: {"stream": "a", "compare": {"lo": [-20, -20], "hi": [20, 20]}},
    2: {"stream": "a", "compare": {"lo": [-10, -10], "hi": [10, 10]}, "emit": "membership"},
    3: {"stream": "a", "area": {"circle": {"center": [10, 0], "radius_m": 900_000}}, "where": "kind = 'x'"},
    10: {"stream": "a", "kind": "rule", "when": IN_WIDE},
    11: {"stream": "a", "kind": "rule", "when": IN_WIDE, "for_s": 4},
    12: {"stream": "a", "kind": "rule", "when": IN_NARROW, "for_s": 2.5, "rearm_s": 9},
    13: {"stream": "a", "kind": "rule", "when": {"all": [IN_WIDE, {"not": IN_NARROW}]}, "for_s": 3},
    14: {"stream": "a", "kind": "rule", "when": IN_EAST, "until": IN_WIDE, "for_s": 1},
    15: {"stream": "a", "kind": "rule", "when": IN_NARROW, "rate": {"more_than": 1, "within_s": 12}},
    17: {"stream": "a", "kind": "rule", "when": count(1, below=2)},
    18: {
        "stream": "a",
        "kind": "rule",
        "when": count(1, above=2),
        "until": count(1, above=1),
        "for_s": 3,
        "rearm_s": 5,
    },
    19: {"stream": "a", "kind": "rule", "when": {"all": [count(1, above=0), {"not": count(2, above=0)}]}, "for_s": 2},
    20: {"stream": "a", "kind": "rule", "when": count(3, above=0), "rate": {"more_than": 1, "within_s": 12}},
    21: {"stream": "a", "kind": "rule", "when": count(2, below=2), "for_s": 1, "schedule": OFFICE},
    16: {"stream": "a", "kind": "rule", "when": {"any": [IN_EAST, IN_NARROW]}, "for_s": 2, "schedule": OFFICE},
}


def value(query, **limit):
    """The condition that the value of an aggregate is below or above a limit."""
    return {"value": {"query": query} | limit}


VALUES = {
    1: PLANS[1],
    4: PLANS[1] | {"aggregate": {"function": "avg", "property": "speed"}},
    5: PLANS[1] | {"aggregate": {"function": "max", "property": "speed", "group_by": "kind"}},
    10: {"stream": "a", "kind": "rule", "when": value(4, below=4.5), "for_s": 2},
    11: {"stream": "a", "kind": "rule", "when": value(4, above=5), "until": value(4, above=4), "rearm_s": 4},
    12: {"stream": "a", "kind": "rule", "when": value(5, above=7, group="x"), "for_s": 1},
    13: {"stream": "a", "kind": "rule", "when": {"all": [count(1, above=1), {"not": value(5, above=6, group="y")}]}},
    14: {"stream": "a", "kind": "rule", "when": value(4, below=4), "rate": {"more_than": 1, "within_s": 15}},
}


class Live:
    """A live engine: reports at random moments, batches cut at random, a clock that is set in the middle of seconds."""

    def __init__(self, folder, seed, plans=PLANS):
        self.rng = rng = random.Random(seed)
        self.engine = Engine(folder, rng.randint(1, 3), rng.randint(1, 4), saved_every=rng.choice([1, 3]))
        self.phase_us = rng.randrange(US)
        self.told = []
        self.heard, self.times = {}, {}
        register = [{"op": "register", "query": n, "revision": 1, "plan": plan} for n, plan in plans.items()]
        stream = {"op": "stream", "stream": "a", "ttl_s": TTL_S, "stored": True}
        self.run([], [{"op": "tick", "now_us": START_S * US}, stream, *register])

    def run(self, reports, control):
        tables = {}
        for heard_us, *report in reports:
            tables.setdefault(heard_us, []).append(report)
        rows = net(self.engine.run([("a", heard, _table(some)) for heard, some in sorted(tables.items())], control))
        self.told += told(rows)

    def second(self, second):
        """Play one second: its reports, and the tick of the clock somewhere within it."""
        reports = sorted(self.reports(second), key=lambda report: report[0])
        tick_us, batch, ticked = second * US + self.phase_us, [], False
        for report in reports:
            again = any(key == report[1] and heard != report[0] for heard, key, *_ in batch)
            if again or self.rng.random() < 0.3:
                self.run(batch, [])
                batch = []
            if report[0] > tick_us and not ticked:
                # What is heard before a tick is read with it at the latest; what is heard later may be read with it.
                ticked = True
                self.run(batch, [{"op": "tick", "now_us": tick_us}] if self.rng.random() < 0.5 else [])
                batch = []
                if self.engine.layout.store.region(0, self.engine.batch).now_us < tick_us:
                    self.run([report], [{"op": "tick", "now_us": tick_us}])
                    continue
            batch.append(report)
        self.run(batch, [] if ticked else [{"op": "tick", "now_us": tick_us}])

    def reports(self, second):
        rng, reports = self.rng, []
        for key in (f"a{number}" for number in range(8)):
            known = self.heard.get(key, 0)
            # An object that comes back within the second in which it is given up may, or may not, have left.
            if abs(second - known - TTL_S) <= 2 or rng.random() > (0.35 if key < "a5" else 0.06):
                continue
            for moment in sorted(rng.randrange(US) for _ in range(rng.choice([1, 1, 1, 2, 3]))):
                heard_us = second * US + moment
                self.heard[key] = second
                x, y = rng.uniform(-30, 30), rng.uniform(-15, 15)
                time_us = max(heard_us - rng.choice([0, 0, 150_000, 2_000_000]), self.times.get(key, 0))
                self.times[key] = time_us
                reports.append((heard_us, key, time_us, x, y, rng.choice("xy"), rng.randrange(10)))
        return reports


def _table(reports):
    keys, times, xs, ys, kinds, speeds = zip(*reports, strict=True)
    properties = [{"kind": kind, "speed": speed} for kind, speed in zip(kinds, speeds, strict=True)]
    boxes = [[x, y, -float("inf"), x, y, float("inf")] for x, y in zip(xs, ys, strict=True)]
    return box_elements("a", keys, times, boxes, properties)


def told(rows):
    """Return what enters and leaves answers, of rules with the time of that."""
    return [
        (row["query"], row["key"], row["sign"], row["time_us"] / US)
        for row in rows.to_pylist()
        if row["sign"] in (ENTERED, LEFT)
    ]


def played(folder, span, moves, chunk_rows, plans=PLANS):
    """Return what a back-test tells, and where each alarm began."""
    asked = BacktestRequest(plans, span, {"a": TTL_S}, moves=moves)
    elements = StoredElements(History(folder / "history", EARTH), asked, chunk_rows)
    rows = [some.rows for some in Playing(asked).play(elements)]
    found = [one for some in rows for one in told(some)]
    places = [
        (row["query"], row["key"], row["time_us"], *row["bounds"][:2], row["properties"])
        for some in rows
        for row in some.to_pylist()
        if row["query"] >= 10 and row["sign"] == ENTERED and not _closely_follows(row, found)
    ]
    return found, sorted(places)


def _closely_follows(row, found):
    """Whether it may be the second tuple of an object in a look at a rule, which is told one tick later."""
    when = row["time_us"] / US
    same = [at for query, key, _, at in found if (query, key) == (row["query"], row["key"])]
    return sum(when - 2 <= at <= when for at in same) > 1


def by_object(tuples):
    """Order tuples by query and object; of one object in one answer, their order is kept."""
    return sorted(tuples, key=lambda one: one[:2])


def lived(folder, seed, plans):
    """Return a live engine after a minute, and the span of that."""
    live = Live(folder, seed, plans)
    for second in range(START_S, START_S + 40):
        live.second(second)
    end_us = (START_S + 65) * US
    for second in range(START_S + 40, START_S + 65):
        live.run([], [{"op": "tick", "now_us": second * US + live.phase_us}])
    return live, (START_S * US, end_us)


@pytest.mark.long
@pytest.mark.separate_seeds(2, 7)
def test_a_back_test_of_rules_about_values_tells_what_was_told_live(tmp_path, seed):
    live, span = lived(tmp_path, seed, VALUES)
    rules = range(10, 20)
    found, _ = played(tmp_path, span, True, random.Random(seed).choice([1, 40, 1000]), VALUES)
    found, told = ([one for one in by_object(some) if one[0] in rules] for some in (found, live.told))
    assert found == told
    assert {query for query, *_ in found} == set(VALUES) & set(rules)


@pytest.mark.long
@pytest.mark.separate_seeds(2, 7, 11, 13)
def test_a_back_test_tells_what_was_told_live(tmp_path, seed):
    live, span = lived(tmp_path, seed, PLANS)
    found, places = played(tmp_path, span, True, random.Random(seed).choice([1, 40, 1000]))
    assert by_object(found) == by_object(live.told)
    assert {query for query, *_ in found} == set(PLANS)
    # Elements with which an object stays where it is change nothing but how long it takes.
    fewer, same_places = played(tmp_path, span, False, random.Random(seed).choice([1, 40, 1000]))
    assert by_object(fewer) == by_object(found)
    assert same_places == places

"""Joins over event time equal brute force over all reports, after every batch, however the input is cut."""

import math
import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import orjson
import pytest
import shapely
from hypothesis import given

from streaming.elements import box_elements, key_hashes, partition_of, wrapped
from streaming.kinds.join.partners import PREDICATES
from streaming.plans import parse_plan, plan_document
from streaming.results import ENTERED
from streaming.results.netting import net
from streaming.servers.ways.time_joins import reports, windows
from streaming.spaces import EARTH
from tests import draws
from tests.draws import examples, rngs
from tests.servers.harness import Engine
from tests.servers.test_stream_joins import Element, joined, random_geometry

SECOND_US = 1_000_000
KEYS = ("a", "b", "c", "d")
STREAMS = ("ships", "ferries")
LAYOUTS = [(1, 1), (1, 4), (2, 4), (2, 6), (3, 9)]
FOREVER_S = 1e6


def random_place(rng, shaped):
    """A point near a border of regions, or as often as `shaped` says some box, line or polygon."""
    if rng.random() < shaped:
        return random_geometry(rng) if rng.random() < 0.7 else random_line(rng)
    x, y = rng.choice((-0.5, 0.0, 0.0, 0.5, 179.5, -179.5)), rng.choice((0.0, 0.0, 0.5))
    return [x, y, -math.inf, x, y, math.inf], None


def random_line(rng):
    """A line that crosses borders of regions, not along its box."""
    x, y = rng.choice((-0.5, 0.0, 179.0)), rng.choice((-0.5, 0.0))
    line = shapely.LineString([(x, y), (x + 0.5, y + 1.0), (x + 1.5, y + 0.5)])
    west, south, east, north = line.bounds
    return [west, south, -math.inf, east, north, math.inf], line


def random_plan(rng, idle_s):
    often = ["dwithin"] * 10 + ["intersects", "boxes"] * 3
    predicate = rng.choice([*PREDICATES, *often])
    join = {"stream": rng.choice(STREAMS), "predicate": "intersects" if predicate == "disjoint" else predicate}
    if predicate == "dwithin":
        join["distance"] = rng.choice([0.0, 60_000.0, 120_000.0])
    join["where"] = rng.choice(["", "", "speed_mps > 1"])
    if rng.random() < 0.2:
        join["filters"] = [rng.choice([{"key": "a"}, {"box": {"lo": [-0.2, -0.2], "hi": [2, 2]}}])]
    document = {"stream": rng.choice(STREAMS), "join": join, "where": rng.choice(["", "", "speed_mps > 1"])}
    document |= {"lateness_s": rng.choice([0, 3, 10]), "idle_s": idle_s, "mirrored": rng.random() < 0.3}
    if rng.random() < 0.2:
        document["transform"] = [rng.choice([{"enlarge_value": 0.5}, {"enlarge_m": 60_000.0}, {"enlarge_factor": 3.0}])]
    if rng.random() < 0.2:
        document["area"] = {"lo": [-1.0, -1.0], "hi": [181.0, 2.0]}
    if rng.random() < 0.2:
        document["filters"] = [rng.choice([{"key": "b"}, {"box": {"lo": [-0.2, -0.2], "hi": [2, 2]}}])]
    if rng.random() < 0.5:
        document |= {"kind": "window_join", "window_s": rng.choice([4, 5, 10]), "start_s": rng.choice([0, 1])}
        if rng.random() < 0.5:
            document["slide_s"] = rng.choice([2, 3, 10])
    else:
        lower, upper = sorted(rng.choices([-10, -4, 0, 3, 8], k=2))
        document |= {"kind": "interval_join", "lower_s": lower, "upper_s": upper, "bin_s": rng.choice([1, 3, 20])}
    return parse_plan(document)


class Report:
    """A report as it arrived."""

    def __init__(self, element, time_us, seen_us):
        self.element, self.time_us, self.seen_us = element, time_us, seen_us
        self.name = element.stream, element.key, time_us, tuple(element.box)


class Query:
    """What brute force knows of a join over event time."""

    def __init__(self, plan, now_us, revision):
        self.plan, self.since_us, self.revision = plan, now_us, revision
        self.reports, self.usable, self.watermark_us = [], [], -math.inf
        self.told, self.expected = Counter(), Counter()
        self.lateness_us = plan.lateness_s * SECOND_US

    def arrive(self, new, homes, now_us):
        """Take the reports of a batch, in the order of arrival; say which pairs are told now."""
        new = [report for report in new if report.element.stream in (self.plan.stream, self.plan.partners.name)]
        until_us = max(self.watermark_us, self.complete(homes, now_us) - self.lateness_us)
        if self.plan.kind == "window_join":
            self.reports += new
            self.windows(self.watermark_us, until_us)
        else:
            new = [r for r in new if r.seen_us - self.lateness_us <= r.time_us >= self.watermark_us]
            before = len(self.usable)
            self.usable += new
            self.tell(self.usable, None, lambda i, j: max(i, j) >= before)
        self.watermark_us = until_us

    def complete(self, homes, now_us):
        """Up to which time both streams are complete."""
        told = [home.get(stream, (-math.inf, self.since_us)) for home in homes for stream in self.streams()]
        told = [(newest, max(heard, self.since_us)) for newest, heard in told]
        active = [newest for newest, heard in told if now_us - heard <= self.plan.idle_s * SECOND_US]
        if active:
            return min(active)
        return max(newest for newest, _ in told) + now_us - max(heard for _, heard in told)

    def streams(self):
        return {self.plan.stream, self.plan.partners.name}

    def windows(self, after_us, until_us):
        size, slide, start = (round(s * SECOND_US) for s in (self.plan.window_s, self.plan.slide_s, self.plan.start_s))
        times = [report.time_us for report in self.reports]
        if not times or until_us == -math.inf:
            return
        first = (min(times) - size - start) // slide
        for number in range(first, (max(times) - start) // slide + 1):
            begin = start + number * slide
            if after_us < begin + size <= until_us:
                inside = [r for r in self.reports if begin <= r.time_us < begin + size]
                inside = [r for r in inside if r.seen_us - self.lateness_us < begin + size]
                self.tell(inside, begin, lambda i, j: True)

    def tell(self, reports, window_us, counts):
        lower, upper = (getattr(self.plan, name, math.inf) for name in ("lower_s", "upper_s"))
        pairs = set()
        for i, a in enumerate(reports):
            for j, b in enumerate(reports):
                apart = (b.time_us - a.time_us) / SECOND_US
                within = window_us is not None or lower <= apart <= upper
                if i != j and counts(i, j) and within and joined(self.plan, a.element, b.element):
                    pairs.add((a.name, b.name))
        if not self.plan.mirrored:
            pairs = {(a, b) for a, b in pairs if (b, a) not in pairs or a < b}
        self.expected.update((a, b, window_us) for a, b in pairs)


class World:
    """The oracle, and the engine beside it."""

    def __init__(self, root, rng, idle):
        layout = rng.choice(LAYOUTS)
        self.engine, self.rng, self.partitions = Engine(Path(root), *layout), rng, layout[0]
        self.shaped = rng.choice([0.05, 0.05, 0.5])
        self.idle, self.queries, self.homes = idle, {}, [{} for _ in range(self.partitions)]
        self.elements, self.control, self.new, self.unjoined = [], [], [], 0
        self.revision, self.now_us, self.clock_us, self.known = 0, 0, 100 * SECOND_US, set()

    def report(self):
        stream, key, (box, geometry) = (
            self.rng.choice(STREAMS),
            self.rng.choice(KEYS),
            random_place(self.rng, self.shaped),
        )
        self.clock_us += self.rng.choice([0, 0, 1, 1, 2]) * SECOND_US
        time_us = self.clock_us - self.rng.choice([0, 0, 0, 1, 2, 5, 12]) * SECOND_US
        properties = {"speed_mps": self.rng.randint(0, 3)}
        (box,) = wrapped(np.array([box]), EARTH).tolist()
        wkb = None if geometry is None else [shapely.to_wkb(geometry)]
        table = box_elements(stream, [key], [time_us], [box], [properties], wkb)
        element = Element(stream, key, box, orjson.dumps(properties).decode(), geometry, self.now_us)
        for _ in range(1 if self.rng.random() < 0.9 else 2):  # now and then the same report comes twice
            self.arrive(stream, key, time_us, table, element)

    def arrive(self, stream, key, time_us, table, element):
        self.elements.append((stream, self.now_us, table))
        home = self.homes[int(partition_of(key_hashes(stream, [key]), self.partitions)[0])]
        newest, _ = home.get(stream, (-math.inf, 0))
        home[stream] = max(newest, time_us), self.now_us
        if (name := (stream, key, time_us, tuple(element.box))) not in self.known:
            self.known.add(name)
            self.new.append(Report(element, time_us, home[stream][0]))

    def register(self):
        """Register a query, or edit one, in a batch that begins with it."""
        self.cut()
        self.revision += 1
        self.known.clear()
        self.clock_us += 40 * SECOND_US  # no report that waits comes again
        query = 1 if self.idle else self.rng.randint(1, 2)
        plan = random_plan(self.rng, 6 if self.idle else FOREVER_S)
        self.queries[query] = Query(plan, self.now_us, self.revision)
        document = plan_document(plan)
        self.control.append({"op": "register", "query": query, "revision": self.revision, "plan": document})

    def cancel(self):
        self.cut()
        self.revision += 1
        query = self.rng.randint(1, 2)
        self.queries.pop(query, None)
        self.control.append({"op": "cancel", "query": query, "revision": self.revision})

    def drive(self):
        """Have the one or the other stream drive a join, or ask for it where there is no choice."""
        if self.queries:
            query, known = self.rng.choice(sorted(self.queries.items()))
            by_partner = self.rng.random() < 0.5
            asked = {"op": "drive", "query": query, "revision": known.revision, "by_partner": by_partner}
            self.control.append(asked)

    def silence(self):
        """Time passes."""
        self.cut()
        self.now_us += self.rng.randint(1, 9) * SECOND_US
        self.control.append({"op": "tick", "now_us": self.now_us})

    def cut(self):
        fragments = self.engine.run_or_die(self.elements, self.control, self.rng, 0.2)
        for known in self.queries.values():
            known.arrive(self.new, self.homes, self.now_us)
        rows = net(fragments).to_pylist()
        assert {row["sign"] for row in rows} <= {ENTERED}
        for row in rows:
            query = self.queries[row["query"]]
            one = query.plan.stream, row["key"], row["time_us"], tuple(row["bounds"])
            other = query.plan.partners.name, row["partner"], row["partner_time_us"], tuple(row["partner_bounds"])
            query.told[one, other, row["window_us"]] += 1
        self.elements, self.control, self.new = [], [], []
        self.unjoined = sum(fragment.counters.get("unjoined", 0) for fragment in fragments)
        for query in self.queries.values():
            assert not query.told - query.expected, query.plan
            assert self.unjoined or query.told == query.expected, query.plan

    def drain(self):
        """Run batches until all windows that have ended are told."""
        for _ in range(1_000):
            if not self.unjoined:
                return
            self.cut()
        raise AssertionError("the windows are never told")


EVENTS = {"report": 40, "register": 0.5, "cancel": 0.2, "silence": 0.5, "drive": 1.5}
# So small that a window of a few reports needs several batches.
SMALL = {"BUDGET": 6, "AHEAD": 0, "SLICE": 2, "LEAST_SLICE": 1, "TOLD": 2}


def play(rng, batches=8):
    """Play a random history, most often with small windows; return the world."""
    if rng.random() < 0.4:
        return play_on(rng, batches)
    sizes = {name: rng.choice([1, 2, 5]) * size for name, size in SMALL.items()}
    with mock.patch.multiple(windows, **sizes), mock.patch.object(reports, "MOST_MERGED", 8):
        return play_on(rng, batches)


def play_on(rng, batches):
    events = EVENTS | {"silence": 2} if (idle := rng.random() < 0.4) else EVENTS
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng, idle)
        world.register()
        for _ in range(batches):
            if rng.random() < 0.2:
                world.engine.restart()
            draws.play(world, events, rng, 35)
            world.cut()
        world.drain()
    return world


@pytest.mark.long
@examples(13)
@given(rngs())
def test_pairs_equal_the_oracle_after_every_batch_and_restart(rng):
    play(rng)

"""Encounters equal brute force over event time, after every batch, however the input is cut."""

import math
import tempfile
from pathlib import Path

import numpy as np
import orjson
import pytest
import shapely
from hypothesis import given

from streaming.elements import box_elements, key_hashes, partition_of, wrapped
from streaming.layers.features import feature_table
from streaming.plans import parse_plan, plan_document
from streaming.results import LEFT, REASONS
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests import draws
from tests.draws import examples, rngs
from tests.geodesy import apart_m
from tests.servers.harness import Client, Engine
from tests.servers.test_stream_joins import Element, close, compared, joined, random_geometry

SECOND_US = 1_000_000
KEYS = ("a", "b", "c", "d")
STREAMS = ("ships", "ferries")
LAYOUTS = [(1, 1), (1, 4), (2, 4), (2, 6), (3, 9)]
FOREVER_S = 1e6
OPEN = math.inf


def random_place(rng):
    """A point near a border of regions, or now and then some box or polygon."""
    if rng.random() < 0.02:
        return random_geometry(rng)
    x, y = rng.choice((-0.5, 0.0, 0.0, 0.5, 179.5, -179.5)), rng.choice((0.0, 0.0, 0.3))
    return [x, y, -math.inf, x, y, math.inf], None


def random_plan(rng, idle_s, gap_s):
    predicate = rng.choice(["dwithin"] * 6 + ["intersects", "boxes"])
    join = {"stream": rng.choice(STREAMS), "predicate": predicate}
    if predicate == "dwithin":
        join["distance"] = rng.choice([0.0, 60_000.0, 120_000.0])
    join["where"] = rng.choice(["", "", "speed_mps > 0"])
    document = {"stream": rng.choice(STREAMS), "kind": "encounter", "join": join}
    document |= {"where": rng.choice(["", "", "speed_mps > 0"]), "for_s": rng.choice([0, 1, 4, 10]), "gap_s": gap_s}
    document |= {"lateness_s": rng.choice([0, 3, 10]), "idle_s": idle_s, "mirrored": rng.random() < 0.3}
    document["emit"] = rng.choice(["changes", "changes", "membership"])
    if rng.random() < 0.15:
        document["transform"] = [rng.choice([{"enlarge_value": 0.5}, {"enlarge_m": 60_000.0}])]
    if rng.random() < 0.2:
        document["area"] = {"lo": [-1.0, -1.0], "hi": [181.0, 2.0]}
    if rng.random() < 0.3:
        document["away_from"] = {"layer": "ports", "distance": rng.choice([0.0, 40_000.0])}
    return parse_plan(document)


class Report:
    """A report as its home server released it, and when it begins to be valid."""

    def __init__(self, element, time_us, arrival):
        self.element, self.time_us, self.arrival, self.start_us = element, time_us, arrival, None

    def begin(self, start_us):
        """Return the report as a query sees it that had come up to `start_us`."""
        told = Report(self.element, self.time_us, self.arrival)
        told.start_us = max(self.time_us, start_us)
        return told


class Ordering:
    """What one home server holds of a stream, and how far it is."""

    def __init__(self, lateness_s, idle_s, now_us):
        self.lateness_us, self.idle_us, self.since_us = lateness_s * SECOND_US, idle_s * SECOND_US, now_us
        self.newest_us, self.heard_us, self.until_us, self.held = -math.inf, 0, -math.inf, []

    def hear(self, report, heard_us):
        self.newest_us, self.heard_us = max(self.newest_us, report.time_us), heard_us
        if self.newest_us - self.lateness_us <= report.time_us >= self.until_us:
            self.held.append(report)

    def release(self, now_us):
        silent = now_us - max(self.heard_us, self.since_us) > self.idle_us
        until_us = self.newest_us + 1 if silent else self.newest_us - self.lateness_us
        self.until_us = max(self.until_us, until_us)
        due = [report for report in self.held if report.time_us < self.until_us]
        self.held = [report for report in self.held if report.time_us >= self.until_us]
        return due


class Query:
    """What brute force knows of a query."""

    def __init__(self, plan, now_us, arrival, layer):
        self.plan, self.since_us, self.arrival, self.layers = plan, now_us, arrival, [(-math.inf, layer)]
        self.reports, self.watermark_us, self.compared, self.measured = [], -math.inf, {}, {}
        self.gap_us, self.for_us = plan.gap_s * SECOND_US, plan.for_s * SECOND_US

    @property
    def streams(self):
        return {self.plan.stream, self.plan.partners.name}

    def complete_us(self, homes, now_us):
        told = [home[stream, self.plan.lateness_s, self.plan.idle_s] for home in homes for stream in self.streams]
        told = [(one.newest_us, max(one.heard_us, self.since_us)) for one in told]
        active = [newest for newest, heard in told if now_us - heard <= self.plan.idle_s * SECOND_US]
        if active:
            return min(active)
        return max(newest for newest, _ in told) + now_us - max(heard for _, heard in told)

    def arrive(self, released, homes, now_us):
        """Take what home servers released in a batch, and let event time go on."""
        mine = [report for report in released if report.element.stream in self.streams]
        self.reports += [report.begin(self.watermark_us) for report in mine if report.arrival >= self.arrival]
        self.watermark_us = max(self.watermark_us, self.complete_us(homes, now_us) - self.plan.lateness_s * SECOND_US)

    def encounters(self):
        """Return all encounters up to the watermark, those that go on with the end `OPEN`, from the definition."""
        pairs = {}
        for (one, begun_us, ended_us), (other, since_us, until_us) in self._overlaps():
            low, high = max(begun_us, since_us), min(ended_us, until_us)
            for begin_us, end_us in self._away(one.element, other.element, low, high):
                if begin_us < end_us and begin_us < self.watermark_us:
                    pairs.setdefault((one.element.key, other.element.key), []).append((begin_us, end_us, one, other))
        found = [told for pair, spans in pairs.items() for told in self._joined(pair, spans)]
        if not self.plan.mirrored and len(self.streams) == 1:
            found = list(self._one_of_two(found))
        return sorted(found)

    def _one_of_two(self, found):
        """Yield the encounters that are told of those that mirror each other, and last long enough."""
        ends = {}
        for told in sorted(found, key=lambda told: (told[1] + self.for_us, told[0])):
            (one, other), _, until_us, _ = told
            before_us = ends.get((other, one), -math.inf)
            if before_us < min(self.watermark_us, until_us):
                ends[one, other] = max(until_us, ends.get((one, other), -math.inf))
                yield told

    def _overlaps(self):
        """Yield the pairs of reports that satisfy all but the times and the layer, with their validity."""
        valid = list(self._valid())
        for one, begun_us, ended_us in valid:
            for other, since_us, until_us in valid:
                if max(begun_us, since_us) < min(ended_us, until_us) and self._satisfy(one, other):
                    yield (one, begun_us, ended_us), (other, since_us, until_us)

    def _satisfy(self, one, other):
        names = one.arrival, other.arrival
        if names not in self.compared:
            self.compared[names] = joined(self.plan, one.element, other.element)
        return self.compared[names]

    def _valid(self):
        """Yield each report with the times between which it is valid."""
        for name in {(report.element.stream, report.element.key) for report in self.reports}:
            mine = [report for report in self.reports if (report.element.stream, report.element.key) == name]
            mine.sort(key=lambda report: (report.start_us, report.time_us, report.arrival))
            nexts = [report.start_us for report in mine[1:]] + [OPEN]
            for report, next_us in zip(mine, nexts, strict=True):
                yield report, report.start_us, min(next_us, report.time_us + self.gap_us)

    def _away(self, one, other, begin_us, end_us):
        """Yield the parts of a span in which both are away from the layer as it was then."""
        if self.plan.away_from is None:
            yield begin_us, end_us
            return
        limits = [since for since, _ in self.layers[1:]] + [OPEN]
        for (since_us, features), until_us in zip(self.layers, limits, strict=True):
            near = (close(side.shape, port, self.plan.away_from.distance) for port in features for side in (one, other))
            if not any(near):
                yield max(begin_us, since_us), min(end_us, until_us)

    def _joined(self, pair, spans):
        spans = sorted((span for span in spans), key=lambda span: span[:2])
        runs = []
        for span in spans:
            if runs and runs[-1][-1][1] == span[0]:
                runs[-1].append(span)
            else:
                runs.append([span])
        for run in runs:
            since_us, until_us = run[0][0], run[-1][1]
            over = until_us < self.watermark_us
            if min(until_us, self.watermark_us) - since_us >= self.for_us:
                yield pair, since_us, until_us if over else OPEN, self._least(run)

    def _least(self, run):
        """Return when and where the two were nearest, up to now."""
        known = [span for span in run if span[0] < self.watermark_us]
        _, _, one, other = min(known, key=lambda span: (self._distance(*span[2:]), span[0]))
        return one.time_us, one.element.box, other.time_us, other.element.box

    def _distance(self, one, other):
        if self.plan.partners.predicate != "dwithin":
            return 0.0
        names = one.arrival, other.arrival
        if names not in self.measured:
            self.measured[names] = round(apart_m(compared(self.plan, one.element), other.element.shape), 3)
        return self.measured[names]


class World:
    """The oracle, and the engine beside it."""

    def __init__(self, root, rng, idle):
        layout = rng.choice(LAYOUTS)
        self.engine, self.rng, self.partitions = Engine(Path(root), *layout), rng, layout[0]
        self.idle, self.queries, self.homes = idle, {}, [{} for _ in range(self.partitions)]
        self.elements, self.control, self.new, self.asked = [], [], [], set()
        self.revision, self.now_us, self.clock_us, self.arrival = 0, 0, 100 * SECOND_US, 0
        self.client, self.ended, self.features, self.version = Client(), {}, {}, None
        self.gap_s = rng.choice([3, 20, 1000])

    def layer(self):
        """Write another version of the layer."""
        self.cut()
        ports = {key: shapely.Point(self.rng.choice((-0.5, 0.0, 0.5)), 0.0) for key in self.rng.sample("pqr", 2)}
        removed = set(self.features) - set(ports)
        table = feature_table("ports", list(ports), list(ports.values()), [{}] * len(ports))
        layers = self.engine.layers
        if self.version is None:
            self.version = layers.write("ports", table)
        else:
            self.version = layers.edit("ports", self.version, table, removed)
        self.features = ports
        self.control.append({"op": "layer", "layer": "ports", "version": self.version})
        for query in self.queries.values():
            query.layers.append((query.watermark_us, list(ports.values())))

    def report(self):
        stream, key, (box, geometry) = self.rng.choice(STREAMS), self.rng.choice(KEYS), random_place(self.rng)
        self.clock_us += self.rng.choice([0, 0, 1, 1, 2]) * SECOND_US
        time_us = self.clock_us - self.rng.choice([0, 0, 0, 1, 2, 5, 12]) * SECOND_US
        properties = {"speed_mps": self.rng.randint(0, 3)}
        (box,) = wrapped(np.array([box]), EARTH).tolist()
        wkb = None if geometry is None else [shapely.to_wkb(geometry)]
        table = box_elements(stream, [key], [time_us], [box], [properties], wkb)
        element = Element(stream, key, box, orjson.dumps(properties).decode(), geometry, self.now_us)
        self.elements.append((stream, self.now_us, table))
        self.arrival += 1
        home = int(partition_of(key_hashes(stream, [key]), self.partitions)[0])
        self.new.append((home, Report(element, time_us, self.arrival)))

    def register(self):
        """Register a query, or edit one, in a batch that begins with it."""
        self.cut()
        self.revision += 1
        query = self.rng.randint(1, 2)
        plan = random_plan(self.rng, 6 if self.idle else FOREVER_S, self.gap_s)
        self.queries[query] = Query(plan, self.now_us, self.arrival + 1, list(self.features.values()))
        self.ended[query] = []
        (self.client.quiet.add if plan.emit == "membership" else self.client.quiet.discard)(query)
        document = plan_document(plan)
        self.control.append({"op": "register", "query": query, "revision": self.revision, "plan": document})

    def cancel(self):
        self.cut()
        self.revision += 1
        query = self.rng.randint(1, 2)
        self.queries.pop(query, None)
        self.control.append({"op": "cancel", "query": query, "revision": self.revision})

    def silence(self):
        """Time passes."""
        self.cut()
        self.now_us += self.rng.randint(1, 9) * SECOND_US
        self.control.append({"op": "tick", "now_us": self.now_us})

    def snapshot(self):
        self.asked = set(self.queries)

    def cut(self):
        self.batch()
        if self.rng.random() < 0.5:
            self.check()

    def batch(self):
        """Run a batch; return how many tuples it tells."""
        snapshots = [{"op": "snapshot", "query": query} for query in self.asked]
        fragments = self.run(self.control + snapshots)
        self.advance()
        self.client.receive(fragments)
        rows = net(fragments).to_pylist()
        for row in rows:
            altered = {entry.get("query") for entry in self.control}  # these encounters end because of the query
            if row["sign"] == LEFT and row["query"] not in altered:
                self.ended[row["query"]].append(told(row, row["until_us"]))
        self.elements, self.control, self.new, self.asked = [], [], [], set()
        return len(rows)

    def advance(self):
        needed = {
            (stream, query.plan.lateness_s, query.plan.idle_s)
            for query in self.queries.values()
            for stream in query.streams
        }
        released = []
        for number, home in enumerate(self.homes):
            for name in home.keys() - needed:
                del home[name]
            for name in needed:
                known = home.setdefault(name, Ordering(*name[1:], self.now_us))
                for place, report in self.new:
                    if place == number and report.element.stream == name[0]:
                        known.hear(report, report.element.heard_us)
                released += [(name, report) for report in known.release(self.now_us)]
        for query in self.queries.values():
            own = query.plan.lateness_s, query.plan.idle_s
            query.arrive([report for name, report in released if name[1:] == own], self.homes, self.now_us)

    def check(self):
        """Compare with the oracle, once everything is told."""
        while self.batch():
            pass
        for number, query in self.queries.items():
            expected = query.encounters()
            ended = [(pair, since, until) for pair, since, until, _ in expected if until < OPEN]
            assert sorted(told[:3] for told in self.ended[number]) == ended, query.plan
            lasting = {pair: since for pair, since, until, _ in expected if until == OPEN}
            assert set(self.client.answers[number]) == set(lasting), query.plan
            if query.plan.emit == "changes":
                self.check_least(number, expected)

    def check_least(self, number, expected):
        """Ends of encounters, and the newest changes of those that last, tell when and where the two were nearest."""
        shown = {}
        for row in self.client.told:
            if row["query"] == number:
                shown[row["key"], row["partner"], row["since_us"]] = row["time_us"], row["partner_time_us"]
        for pair, since_us, _, (time_us, _, partner_time_us, _) in expected:
            assert shown[(*pair, since_us)] == (time_us, partner_time_us), (pair, since_us)

    def run(self, control):
        """Run the batch, now and then after a restart."""
        if self.rng.random() < 0.1:
            self.engine.restart()
        return self.engine.run_or_die(self.elements, control, self.rng, 0.1)


def told(row, until_us):
    return (row["key"], row["partner"]), row["since_us"], until_us, REASONS[row["reason"]]


EVENTS = {"report": 40, "register": 0.5, "cancel": 0.2, "silence": 0.5, "layer": 0.4, "snapshot": 1}


def play(rng, batches=5):
    """Play a random history; return the world."""
    events = EVENTS | {"silence": 2} if (idle := rng.random() < 0.4) else EVENTS
    with tempfile.TemporaryDirectory() as root:
        world = World(root, rng, idle)
        world.layer()
        world.register()
        for _ in range(batches):
            draws.play(world, events, rng, 25)
            world.cut()
        world.check()
    return world


@pytest.mark.long
@examples(16)
@given(rngs())
def test_encounters_equal_the_oracle_after_every_batch_and_restart(rng):
    play(rng)

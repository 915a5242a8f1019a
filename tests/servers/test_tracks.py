"""Queries about tracks tell what brute force tells, however reports are cut into micro-batches, through restarts."""

import itertools
import random
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.elements import partition_of
from streaming.engine.repartition import divided
from streaming.errors import InvalidPlan
from streaming.plans import parse_plan, plan_document
from streaming.servers.ways.tracks.home import TRACKING
from streaming.spaces import EARTH, Dimension, Space
from tests.draws import examples
from tests.servers.harness import Client, Engine, one

GEOD = pyproj.Geod(ellps="WGS84")
SECOND_US = 1_000_000
KEYS = ("a", "b", "c")
TRIANGLE = {"type": "Polygon", "coordinates": [[[-0.1, 59.95], [0.1, 59.95], [0.0, 60.05], [-0.1, 59.95]]]}
BOX = {"lo": [-0.05, 59.96], "hi": [0.06, 60.03]}
ACROSS = {"lo": [179.95, -0.04], "hi": [180.06, 0.03]}
CIRCLE = {"circle": {"center": [0.0, 60.0], "radius_m": 4_000.0}}
CORRIDOR = {"corridor": {"line": [[-0.15, 60.03], [0.15, 59.97]], "width_m": 3_000.0}}
AREAS = {"triangle": TRIANGLE, "box": BOX, "across": ACROSS, "circle": CIRCLE, "corridor": CORRIDOR}
SAMPLES = 3_000


def track(area, **more):
    return {"stream": "s", "kind": "track", "area": area} | more


class Border:
    """The signed depth of places within an area, in metres, by a projection about its middle and shapely."""

    def __init__(self, area, step_deg=0.001):
        self.away_m = area.get("circle", {}).get("radius_m", area.get("corridor", {}).get("width_m", 0) / 2)
        if "lo" in area:
            shape = shapely.box(*area["lo"], *area["hi"])
        elif "circle" in area:
            shape = shapely.Point(area["circle"]["center"])
        else:
            shape = shapely.LineString(area["corridor"]["line"]) if "corridor" in area else shapely.geometry.shape(area)
        middle = shape.centroid
        self._to_plane = pyproj.Proj(proj="aeqd", lon_0=middle.x, lat_0=middle.y, ellps="WGS84")
        # A straight line in longitude and latitude bends in the plane.
        self._shape = shapely.transform(shapely.segmentize(shape, step_deg) if shape.length else shape, self._plane)

    def _plane(self, places):
        return np.stack(self._to_plane(*places.T), axis=1)

    def depth_m(self, places):
        points = shapely.points(self._plane(places))
        if self.away_m:
            return self.away_m - shapely.distance(points, self._shape)
        away = shapely.distance(points, self._shape.boundary)
        return np.where(shapely.intersects(self._shape, points), away, -away)


BORDERS = {name: Border(area) for name, area in AREAS.items()}


class Oracle:
    """Follows one object through its reports, in the order of arrival, for one query."""

    def __init__(self, border, plan, samples=SAMPLES):
        self.border, self.plan, self.samples = border, plan, samples
        self.seen, self.fix, self.doubted, self.inside = -1, None, [], False
        self.events, self.left_out, self.sure = [], 0, True

    def radius(self, properties):
        asked = self.plan.get("accuracy", 0)
        if not isinstance(asked, dict):
            return asked
        told = properties.get(asked["property"])
        return told if isinstance(told, int | float) and told >= 0 else asked.get("else_m", 0)

    def report(self, time_s, place, properties):
        if time_s <= self.seen:
            return
        self.seen = time_s
        passes = not self.plan.get("where") or properties["kind"] == "ship"
        fix = time_s, np.array(place), self.radius(properties), passes
        if self.fix is not None and not self._reaches(self.fix, fix):
            agrees = self.doubted and self._reaches(self.doubted[-1], fix)
            self.doubted = [*self.doubted, fix] if agrees else [fix]
            if len(self.doubted) < 3:
                self.left_out += 1
                return
            before = None
        else:
            before = self.fix
        self.fix, self.doubted = fix, []
        if before is not None and before[3] and time_s - before[0] <= self.plan.get("gap_s", 300):
            self._walk(before, fix)
        self._arrive(fix)

    def _reaches(self, one_end, other):
        fastest = self.plan.get("fastest_m_s")
        return fastest is None or GEOD.inv(*one_end[1], *other[1])[2] <= fastest * (other[0] - one_end[0])

    def _walk(self, before, fix):
        share = np.linspace(0, 1, self.samples + 1)[1:]  # with the end, where the radius of the way may not be its own
        way = fix[1] - before[1]
        way[0] = (way[0] + 180) % 360 - 180
        step_m = GEOD.inv(*before[1], *(before[1] + way))[2] / self.samples
        depth, radius = self.border.depth_m(before[1] + share[:, None] * way), max(before[2], fix[2])
        for line in (depth - radius, -depth - radius):
            turns = np.flatnonzero(np.diff(np.sign(np.diff(line))) != 0) + 1
            # A way that only just touches the border, or does not, cannot be told from samples.
            self.sure &= not (step_m and (np.abs(line[turns]) < 2 * step_m + 0.1).any()) and abs(line[-1]) >= 0.1
        sides = np.where(depth >= radius, 1, np.where(-depth > radius, -1, 0))
        for at in np.flatnonzero(sides):
            self._turn(sides[at] == 1, before[0] + share[at] * (fix[0] - before[0]), (before[0], fix[0]))

    def _arrive(self, fix):
        depth = self.border.depth_m(fix[1][None])[0]
        if min(abs(depth - fix[2]), abs(-depth - fix[2])) < 0.1:
            self.sure = False
        if not fix[3] or -depth > fix[2]:
            self._turn(False, fix[0], None)
        elif depth >= fix[2]:
            self._turn(True, fix[0], None)

    def _turn(self, inside, time_s, between):
        if inside != self.inside:
            self.inside = inside
            self.events.append((1 if inside else -1, time_s, between))


def history(rng, reports):
    """Return reports, in the order of arrival: (key, second, place, properties)."""
    told, where = [], {key: (rng.choice([0.0, 180.0]), 0.0) for key in KEYS}
    where = {key: (lon, 60.0 if lon == 0 else 0.0) for key, (lon, _) in where.items()}
    clock = dict.fromkeys(KEYS, 1_000.0)
    for _ in range(reports):
        key = rng.choice(KEYS)
        lon, lat = where[key]
        clock[key] += rng.choice([10, 60, 100, 290, 310, 400])
        far = rng.choice([0.02, 0.1, 0.1, 0.2, 0.6])
        place = (lon + rng.uniform(-far, far) + 180) % 360 - 180, lat + rng.uniform(-far, far) / 2
        properties = {"kind": rng.choice(["ship", "ship", "ship", "bus"])}
        accuracy = rng.choice([None, 0, 30.5, 400, 2_000, "bad", -1])
        properties |= {} if accuracy is None else {"acc": accuracy}
        told.append((key, clock[key], place, properties))
        if rng.random() < 0.1:  # it comes again, or too late
            back = rng.choice([0, 0, 5, 400])
            told.append((key, clock[key] - back, (place[0], place[1] + (0.01 if back else 0)), properties))
    return told


def plans_of(rng):
    found = {}
    for query in range(1, 6):
        name = rng.choice(list(AREAS))
        accuracy = rng.choice([0, 100, {"property": "acc", "else_m": 20}])
        more = {"accuracy": accuracy, "gap_s": rng.choice([0, 60, 300, 86_400])}
        more |= rng.choice([{}, {"fastest_m_s": 40}, {"fastest_m_s": 200}])
        more |= rng.choice([{}, {}, {"where": "kind = 'ship'"}])
        more |= rng.choice([{}, {"emit": "membership"}])
        found[query] = name, track(AREAS[name], **more)
    return found


def played(rng, plans, reports, batches, engine_of=Engine):
    """Play reports cut into micro-batches; return the client, and how many reports were not believed."""
    control = [{"op": "register", "query": q, "revision": 1, "plan": plan} for q, (_, plan) in plans.items()]
    with tempfile.TemporaryDirectory() as root:
        engine, client = engine_of(Path(root), *rng.choice([(1, 1), (2, 4), (3, 2)])), Client()
        client.quiet = {query for query, (_, plan) in plans.items() if plan.get("emit") == "membership"}
        cuts = sorted(rng.choices(range(len(reports) + 1), k=batches - 1))
        doubted, number = 0, itertools.count(1)
        for start, stop in itertools.pairwise([0, *cuts, len(reports)]):
            elements = []
            for key, time_s, (lon, lat), properties in reports[start:stop]:
                version = round(time_s * SECOND_US)
                elements.append(("s", next(number), one("s", key, version, (lon, lat, 0, lon, lat, 0), properties)))
            told = engine.run_or_die(elements, control, rng, 0.2)
            doubted += sum(fragment.counters.get("doubted", 0) for fragment in told)
            client.receive(told)
            control = [{"op": "snapshot", "query": query} for query in plans]
            if rng.random() < 0.3:
                engine.restart()
        for _ in range(len(reports) + 2):
            told = engine.run([], [])
            client.receive(told)
            if not any(fragment.changes.num_rows for fragment in told):
                break
        client.receive(engine.run([], control))
    return client, doubted


def events_of(client):
    """Return, by query and key, what entered and left, in order: sign, time in seconds, and between which reports."""
    events = defaultdict(list)
    for row in client.told:
        if row["sign"]:
            between = None if row["from_us"] is None else (row["from_us"] / SECOND_US, row["to_us"] / SECOND_US)
            events[row["query"], row["key"]].append((row["sign"], row["time_us"] / SECOND_US, between))
    return events


def expected(plans, reports, samples=SAMPLES):
    found = {
        (query, key): Oracle(BORDERS[name], plan, samples) for query, (name, plan) in plans.items() for key in KEYS
    }
    for (_, key), oracle in found.items():
        for who, time_s, place, properties in reports:
            if who == key:
                oracle.report(time_s, place, properties)
    return found


@pytest.mark.long
@given(st.integers(0, 2**32))
@examples(12)
def test_what_is_told_is_what_brute_force_tells_however_reports_are_cut(seed):
    rng = random.Random(seed)
    plans, reports = plans_of(rng), history(rng, 25)
    oracles = expected(plans, reports)
    assume(all(oracle.sure for oracle in oracles.values()))
    tellings = []
    for batches in (rng.randint(1, 8), len(reports)):
        client, doubted = played(rng, plans, reports, batches)
        told = events_of(client)
        assert doubted == sum(oracle.left_out for oracle in oracles.values())
        for pair, oracle in oracles.items():
            mine, theirs = told[pair], oracle.events
            assert [event[0] for event in mine] == [event[0] for event in theirs], (plans[pair[0]], mine, theirs)
            for (_, at, between), (_, other, theirs_between) in zip(mine, theirs, strict=True):
                assert between == theirs_between
                span = between[1] - between[0] if between else 0
                assert abs(at - other) <= 2 * span / SAMPLES + 0.002, (plans[pair[0]], mine, theirs)
        assert {query: set(client.answers[query]) for query in plans} == {
            query: {key for key in KEYS if oracles[query, key].inside} for query in plans
        }
        tellings.append(dict(told))
    first, second = ({pair: told for pair, told in one.items() if told} for one in tellings)
    assert first == second


def test_histories_have_changes_at_reports_and_between_them_and_reports_that_are_not_believed():
    """With few samples, so that it is quick: it counts changes, whenever they are."""
    seen = Counter()
    for seed in range(5):
        rng = random.Random(seed)
        plans, reports = plans_of(rng), history(rng, 25)
        for oracle in expected(plans, reports, samples=100).values():
            seen.update("interpolated" if between else "reported" for _, _, between in oracle.events)
            seen["doubted"] += oracle.left_out
    assert min(seen[what] for what in ("interpolated", "reported", "doubted")) > 20, seen


class Sea:
    """An engine with one query, and what is told of one object."""

    def __init__(self, root, area=BOX, **more):
        self.engine, self.client, self.number = Engine(Path(root), 2, 4), Client(), 0
        self.control = [{"op": "register", "query": 1, "revision": 1, "plan": track(area, **more)}]

    def report(self, lon, lat=60.0, key="a", second=None, height_m=0.0, **properties):
        self.number += 1
        version = (self.number * 100 if second is None else second) * SECOND_US
        place = (lon, lat, height_m)
        self.step([("s", version, one("s", key, version, (*place, *place), properties))])
        return self.answer

    def step(self, elements=(), *control):
        fragments = self.engine.run(list(elements), [*self.control, *control])
        self.client.receive(fragments)
        self.control = []
        return fragments

    @property
    def answer(self):
        return set(self.client.answers[1])

    @property
    def told(self):
        return [("-~+"[row["sign"] + 1], row["reason"], row["from_us"] is not None) for row in self.client.told]


@pytest.fixture
def sea(tmp_path):
    def made(area=BOX, **more):
        return Sea(tmp_path, area, **more)

    return made


def test_an_object_stays_what_it_was_while_its_circle_is_on_the_border(sea):
    sea = sea(accuracy={"property": "acc", "else_m": 10}, gap_s=0)
    degree_m = GEOD.inv(0, 60, 1, 60)[2]
    ahead = {deep_m: 0.06 - deep_m / degree_m for deep_m in (-101, -99, 99, 101)}
    assert [sea.report(ahead[deep_m], acc=100) for deep_m in (-99, 99, 101, 99, -99, -101, 99)] == [
        *(set(), set(), {"a"}, {"a"}, {"a"}, set(), set()),
    ]
    # Without the property, the plan says how accurate it is.
    assert sea.report(ahead[99]) == {"a"}


def test_an_object_that_crossed_between_two_reports_is_told_as_entry_and_exit(sea):
    sea = sea()
    sea.report(-0.2)
    sea.report(0.2)
    assert sea.told == [("+", 0, True)]
    sea.step()
    assert sea.told == [("+", 0, True), ("-", 0, True)] and not sea.answer
    (one_end, other), times = sea.client.told, [row["time_us"] / SECOND_US for row in sea.client.told]
    assert np.allclose(times, [100 + 100 * 0.15 / 0.4, 100 + 100 * 0.26 / 0.4], atol=0.002)
    assert (one_end["from_us"], other["to_us"]) == (100 * SECOND_US, 200 * SECOND_US)


def test_reports_that_are_far_apart_in_time_are_not_connected(sea):
    sea = sea(gap_s=99)
    assert sea.report(-0.2) == sea.report(0.2) == set()
    assert sea.report(0.0) == {"a"} and sea.told == [("+", 0, False)]


def test_a_jump_is_not_believed_until_three_reports_agree(sea):
    sea = sea(fastest_m_s=50)
    assert sea.report(0.0) == {"a"}
    assert sea.report(5.0) == sea.report(0.01) == {"a"}  # there and back
    # The second agrees with the first, the third with neither; then three in a row agree.
    assert sea.report(5.0) == sea.report(5.01) == sea.report(9.0) == {"a"}
    assert sea.report(5.0) == sea.report(5.0) == {"a"} and sea.report(5.01) == set()
    sea.step()
    assert [told for told in sea.told if told[0] != "~"] == [("+", 0, False), ("-", 0, False)]
    assert sea.report(5.02) == set()


def test_what_is_not_believed_is_counted_and_is_the_warning_of_the_query(sea):
    sea = sea(fastest_m_s=50)
    sea.report(0.0)
    version = 200 * SECOND_US
    told = sea.step([("s", version, one("s", "a", version, (9, 60, 0, 9, 60, 0), {}))])
    assert sum(fragment.counters.get("doubted", 0) for fragment in told) == 1
    (failure,) = (failure for fragment in told for failure in fragment.failures)
    assert failure["queries"] == [[1, 1]] and failure["error"].startswith("reports were not believed")
    assert (failure["kind"], failure["reports"]) == ("doubted", 1)
    assert sea.answer == {"a"}


def test_reports_that_come_too_late_are_counted_and_do_not_count(sea):
    sea = sea()
    sea.report(0.0)
    told = sea.step([("s", 1, one("s", "a", 50 * SECOND_US, (1, 60, 0, 1, 60, 0), {}))])
    assert sum(fragment.counters.get("late", 0) for fragment in told) == 1
    assert sea.answer == {"a"} and sea.told == [("+", 0, False)]


def test_an_object_that_no_longer_passes_the_filter_leaves_at_that_report(sea):
    sea = sea(where="kind = 'ship'")
    assert sea.report(0.0, kind="ship") == {"a"}
    assert sea.report(0.01, kind="bus") == set()
    assert sea.report(0.02, kind="ship") == {"a"}
    assert sea.told == [("+", 0, False), ("-", 8, False), ("+", 8, False)]


def test_an_edit_tells_the_difference_at_once_and_a_cancelled_query_has_no_members(sea):
    sea = sea()
    sea.report(0.0, key="a"), sea.report(0.1, key="b")
    assert sea.answer == {"a"}
    sea.step([], {"op": "register", "query": 1, "revision": 2, "plan": track({"lo": [0.08, 59.9], "hi": [0.2, 60.1]})})
    assert sea.answer == {"b"} and sea.told[1:] == [("-", 2, False), ("+", 2, False)]
    sea.step([], {"op": "register", "query": 2, "revision": 1, "plan": track(BOX)})
    assert set(sea.client.answers[2]) == {"a"} and sea.told[-1] == ("+", 1, False)
    sea.step([], {"op": "cancel", "query": 1, "revision": 3})
    assert sea.answer == set() and sea.told[-1] == ("-", 3, False)


def test_an_object_that_is_silent_leaves_and_its_track_begins_anew(sea):
    sea = sea(fastest_m_s=50)
    sea.step([], {"op": "stream", "stream": "s", "ttl_s": 30})
    assert sea.report(0.0, second=100) == {"a"}
    sea.step([], {"op": "tick", "now_us": 129 * SECOND_US})
    assert sea.answer == {"a"}
    sea.step([], {"op": "tick", "now_us": 131 * SECOND_US})
    assert sea.answer == set() and sea.told[-1] == ("-", 4, False)
    assert sea.report(0.05, second=132) == {"a"}


def test_a_stream_that_is_dropped_takes_its_objects_with_it(sea):
    sea = sea()
    sea.report(0.0)
    sea.step([], {"op": "drop_stream", "stream": "s"})
    assert sea.answer == set() and sea.told[-1] == ("-", 6, False)


def test_an_aircraft_above_the_area_is_not_in_it(sea):
    sea = sea({"lo": [*BOX["lo"], 0], "hi": [*BOX["hi"], 1_000]})
    assert sea.report(0.0, height_m=5_000) == set()
    assert sea.report(0.01, height_m=500) == {"a"}


def test_a_rule_follows_a_track(sea):
    sea = sea()
    rule = {"op": "register", "query": 2, "revision": 1, "plan": {"stream": "s", "kind": "rule", "when": {"query": 1}}}
    sea.step([], rule, {"op": "tick", "now_us": 99 * SECOND_US})
    sea.report(0.0)
    for second in (101, 102, 103):
        sea.step([], {"op": "tick", "now_us": second * SECOND_US})
    (alarm,) = (row for row in sea.client.told if row["query"] == 2)
    assert (alarm["sign"], alarm["time_us"]) == (1, 100 * SECOND_US)
    sea.report(0.2)  # it left on its way, and this was heard in second 200, so not more than half a second later
    for second in (201, 202, 203):
        sea.step([], {"op": "tick", "now_us": second * SECOND_US})
    *_, end = (row for row in sea.client.told if row["query"] == 2)
    assert (end["sign"], end["time_us"]) == (-1, 199_500_000)


def test_other_home_servers_go_on_where_the_former_ones_were():
    with tempfile.TemporaryDirectory() as root:
        sea = Sea(root)
        for key in "abcdef":
            sea.report(-0.2, key=key), sea.report(0.0, key=key)
        store, batch = sea.engine.layout.store, sea.engine.batch
        homes = [store.home(number, batch) for number in range(2)]
        for number, home in enumerate(divided(homes, 3)):
            for name in ("fixes", "members"):
                keys = np.sort(np.concatenate([keys_of(getattr(former.parts[TRACKING], name)) for former in homes]))
                mine = keys[partition_of(keys, 3) == number]
                found = np.sort(keys_of(getattr(home.parts[TRACKING], name)))
                assert found.tolist() == mine.tolist() and len(keys) == 6


def keys_of(table):
    return table.take(*table.whole())["key_hash"]


@pytest.mark.parametrize("area", AREAS.values())
@pytest.mark.parametrize("more", [{}, {"accuracy": 5, "fastest_m_s": 3.5}, {"accuracy": {"property": "x"}, "gap_s": 0}])
def test_a_plan_is_what_its_document_says(area, more):
    plan = parse_plan(track(area, where="kind = 'ship'", **more), EARTH)
    assert parse_plan(plan_document(plan, EARTH), EARTH) == plan


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"fastest_m_s": 0}, "fastest_m_s must be"),
        ({"gap_s": -1}, "gap_s must be"),
        ({"gap_s": 86_401}, "gap_s must be"),
        ({"accuracy": -1}, "accuracy must be"),
        ({"accuracy": "x"}, "accuracy must be"),
        ({"accuracy": {"else_m": 5}}, "accuracy: property must be"),
        ({"accuracy": {"property": 'a"b'}}, "a property's name"),
        ({"accuracy": {"property": "a", "metres": 5}}, "accuracy"),
        ({"area": None}, "area must be a box or a shape"),
        ({"area": {"lo": [None, 0], "hi": [None, 1]}}, "bounds in longitude and latitude"),
        ({"area": {"lo": [-100, 0], "hi": [100, 1]}}, "at most 180 degrees"),
        ({"emit": "all"}, "emit must be changes or membership"),
        ({"within_s": 5}, "a query about tracks"),
    ],
)
def test_what_a_plan_cannot_be(more, rule):
    with pytest.raises(InvalidPlan, match=rule):
        parse_plan(track(BOX) | more, EARTH)


def test_a_space_without_longitudes_has_no_tracks():
    plane = Space("plane", (Dimension("x", "m", 0, 10), Dimension("y", "m", 0, 10)))
    with pytest.raises(InvalidPlan, match="longitude and latitude"):
        parse_plan(track({"lo": [1, 1], "hi": [2, 2]}), plane)

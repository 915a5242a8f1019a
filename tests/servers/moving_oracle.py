"""Brute force: queries that move, nearest neighbours and aggregates, one element at a time."""

import math

import numpy as np
import orjson
import shapely

from streaming.elements import key_hashes
from streaming.kinds.aggregate.plan import AggregatePlan
from streaming.kinds.around import Circle, Rectangle
from streaming.kinds.knn.plan import NearestPlan
from streaming.kinds.range.plan import RangePlan
from streaming.operators.geodesics import local_metres
from streaming.results import DROPPED, EXPIRED
from tests.geodesy import apart_m, points_m
from tests.oracle import boxes_meet, in_area, satisfies, where_holds
from tests.servers.test_continuous_queries import SECOND_US, World

# As exact are distances below 10 km.
SHORT_EXACT_M = 2e-5


def middle(box, space):
    """The middle of a box, None in a dimension without an end."""
    ends = [(box[a], box[space.n + a]) for a in range(space.n)]
    return [(low + high) / 2 if math.isfinite(low) and math.isfinite(high) else None for low, high in ends]


def ways(box, place, space):
    """The offsets from a place to the nearest place of a box, in each of the first two dimensions by itself."""
    way = []
    for axis, value in enumerate(place[:2]):
        dimension = space.dimensions[axis]
        turns = [0, dimension.extent, -dimension.extent] if dimension.wraps else [0]
        nearest = []
        for turn in turns:
            low, high = box[axis] + turn - value, box[space.n + axis] + turn - value
            nearest.append(max(low, 0) + min(high, 0))
        way.append(min(nearest, key=abs))
    return way


def distance(box, place, space):
    """How far a box is from a place."""
    way = ways(box, place, space)
    if not space.geographic:
        return math.hypot(*way)
    south, north = max(box[1], -90.0), min(box[space.n + 1], 90.0)
    if way[0] and south < north:
        return apart_m(shapely.Point(place[:2]), shapely.LineString([(place[0] + way[0], y) for y in (south, north)]))
    return float(points_m(place[0], place[1], place[0] + way[0], np.clip(place[1] + way[1], -90, 90)))


def in_shape(shape, box, place, space):
    """Whether a box meets a range about a place."""
    if isinstance(shape, Circle):
        return distance(box, place, space) <= shape.radius
    factors = local_metres(place[1]) if space.geographic else (1.0, 1.0)
    if isinstance(shape, Rectangle):
        half = [float(h) for h in shape.half_widths]
        half = [h / f for h, f in zip(half[:2], factors, strict=False)] + half[2:]
        centre = [*place, *[None] * (space.n - len(place))]
        half = [math.inf if c is None else h for c, h in zip(centre, half, strict=True)]
        centre = [c or 0.0 for c in centre]
        low, high = ([c + sign * h for c, h in zip(centre, half, strict=True)] for sign in (-1, 1))
        for axis, dimension in enumerate(space.dimensions[:2]):
            if dimension.wraps and high[axis] - low[axis] >= dimension.extent:
                low[axis], high[axis] = -math.inf, math.inf
        return boxes_meet(box, low + high, space)
    n = space.n
    shifts = [(turn, 0.0) for turn in ((0, 360, -360) if space.geographic else (0,))]
    polygon = shapely.Polygon(shape.polygon)
    for x, y in shifts:
        low = [(np.clip(box[a] - place[a] + s, -1e15, 1e15)) * factors[a] for a, s in ((0, x), (1, y))]
        high = [(np.clip(box[n + a] - place[a] + s, -1e15, 1e15)) * factors[a] for a, s in ((0, x), (1, y))]
        if polygon.intersects(shapely.box(*low, *high) if low != high else shapely.Point(low)):
            return True
    return False


class MovingWorld(World):
    """The oracle of distributed queries."""

    @property
    def objects(self):
        """What is known of all objects that are not silent for too long: (stream, key) -> (box, properties)."""
        return {
            (stream, key): (box, text)
            for (stream, key), (_, box, text, heard_us) in self.newest.items()
            if stream not in self.ttl or heard_us >= self.now_us - self.ttl[stream] * SECOND_US
        }

    def check(self, client, query, plan):
        """A client's answer is what brute force finds, and it knows where the query is."""
        check(plan, self, client, query)
        focus = getattr(getattr(plan, "range", plan), "focus", None)
        if focus is None or focus.at:
            return
        known = self.objects.get((focus.stream, focus.key))
        told = client.places.get(query)
        assert (known is None) == (told is None or told["reason"] in (EXPIRED, DROPPED)), (plan, known, told)
        assert known is None or (told["key"], told["box"], told["properties"]) == (focus.key, *known)

    def place(self, focus):
        """Where a focus is, or None."""
        if focus.at:
            return list(focus.at)
        known = self.objects.get((focus.stream, focus.key))
        return None if known is None else middle(known[0], self.space)

    def looked_at(self, plan):
        """The objects that a query looks at, wherever it is."""
        for (stream, key), (box, properties) in self.objects.items():
            focal = plan.focus.key and (plan.focus.stream, plan.focus.key) == (stream, key)
            here = stream == plan.stream and not focal and in_area(plan, box, self.space)
            if here and where_holds(plan.where, properties):
                yield key, box, properties

    def range(self, plan):
        """The answer of a range query: key -> (box, properties)."""
        if isinstance(plan, RangePlan):
            return {
                key: (box, properties)
                for (stream, key), (box, properties) in self.objects.items()
                if satisfies(plan, stream, box, properties, self.space)
            }
        place = self.place(plan.focus)
        if place is None:
            return {}
        found = self.looked_at(plan)
        return {key: (box, p) for key, box, p in found if in_shape(plan.shape, box, place, self.space)}

    def distances(self, plan):
        """The distances of all objects that a kNN query may find, by key."""
        place = self.place(plan.focus)
        if place is None:
            return {}
        found = {key: distance(box, place, self.space) for key, box, _ in self.looked_at(plan)}
        return {key: d for key, d in found.items() if d <= plan.max_distance}

    def groups(self, plan):
        """The values of an aggregate: group -> {"value", "count"} and perhaps "object"."""
        members, aggregate = {}, plan.aggregate
        for key, (box, properties) in self.range(plan.range).items():
            known = orjson.loads(properties or "{}")
            group = known.get(aggregate.group_by, None) if aggregate.group_by else ""
            value = self.value(aggregate, box, known)
            number = int(key_hashes(plan.stream, [key])[0])
            members.setdefault("null" if group is None else str(group), []).append((value, number, key))
        if not aggregate.group_by:
            members.setdefault("", [])
        return {group: figures(aggregate.function, found) for group, found in members.items()}

    def value(self, aggregate, box, known):
        """What an aggregate looks at, None where there is no such number."""
        if aggregate.dimension:
            axis = [d.name for d in self.space.dimensions].index(aggregate.dimension)
            low, high = box[axis], box[self.space.n + axis]
            return (low + high) / 2 if math.isfinite(low) and math.isfinite(high) else None
        value = known.get(aggregate.property)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def figures(function, members):
    """What a group is told as."""
    values = [value for value, _, _ in members if value is not None]
    told = {"count": len(members)}
    if function in ("min", "max"):
        best = {"min": min, "max": max}[function](values) if values else None
        named = min(((n, key) for value, n, key in members if value == best and values), default=(0, None))[1]
        return told | {"value": best, "object": named}
    if function == "count":
        return told | {"value": float(len(members))}
    total = math.fsum(values)
    if function == "sum":
        return told | {"value": total}
    return told | {"value": total / len(values) if values else None}


def loaded(properties):
    """Properties as an object, however a client keeps them."""
    return orjson.loads(properties or "{}") if isinstance(properties, str | None) else properties


def shown(answer):
    """An answer with its properties as objects."""
    return {key: (list(box), loaded(properties)) for key, (box, properties) in answer.items()}


def check(plan, world, client, query):
    """A client's answer is what brute force finds."""
    answer = client.answers[query]
    if isinstance(plan, AggregatePlan):
        expected = world.groups(plan)
        told = {key: loaded(properties) for key, (_, properties) in answer.items() if isinstance(key, str)}
        assert told.keys() == expected.keys(), (plan, told, expected)
        for group, values in expected.items():
            assert told[group].keys() == values.keys()
            for name, value in values.items():
                close = isinstance(value, float) and math.isclose(told[group][name], value, rel_tol=1e-9, abs_tol=1e-9)
                assert close or told[group][name] == value, (plan, group, told, expected)
        return
    if not isinstance(plan, NearestPlan):
        expected = world.range(plan)
        if plan.emit == "changes":
            assert shown(answer) == shown(expected), (plan, answer, expected)
        assert answer.keys() == expected.keys(), (plan, answer, expected)
        return
    known = world.distances(plan)
    assert len(answer) == min(plan.k, len(known)), (plan, answer, known)
    if answer:
        limit = sorted(known.values())[len(answer) - 1]
        slack = 1e-9 * max(1.0, limit) + (SHORT_EXACT_M if world.space.geographic else 0.0)
        assert {key for key, d in known.items() if d < limit - slack} <= answer.keys(), (plan, answer, known)
        assert all(known[key] <= limit + slack for key in answer), (plan, answer, known)
    if plan.emit == "changes":
        told = [(client.ranks[query][key], client.distances[query][key], key) for key in answer]
        objects = world.objects
        for rank, (told_rank, told_distance, key) in enumerate(sorted(told), 1):
            assert told_rank == rank
            assert math.isclose(told_distance, known[key], rel_tol=1e-9, abs_tol=SHORT_EXACT_M), (plan, told, known)
            assert shown({key: answer[key]}) == shown({key: objects[plan.stream, key]})
        ordered = [d for _, d, _ in sorted(told)]
        assert ordered == sorted(ordered)

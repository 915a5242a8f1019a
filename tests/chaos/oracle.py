"""What each answer must be while everything rests: brute force over what was acknowledged."""

from typing import Any

import numpy as np
import shapely

from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.range.plan import RangePlan
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.chaos.pairs import TIME_JOINS
from tests.geodesy import points_m
from tests.live.truth import AtRest, Held, answer, differences
from tests.oracle import boxes_meet
from tests.servers.moving_oracle import check

# A degree at the equator has 111 km, so objects farther apart than this are farther apart than every distance here.
NEAR_DEG = 0.02
# Distances below 10 km are exact to as much.
EXACT_M = 2e-5


class Truth:
    """The answers that are right for objects that rest.

    Parameters
    ----------
    objects : dict of str to dict
        By stream, the newest version of each object by key.
    rings : dict
        The layer's features, by key.
    """

    def __init__(self, objects: dict[str, dict[str, dict]], rings: dict[str, list]) -> None:
        self.objects = objects
        self._worlds = {stream: AtRest(stream, known) for stream, known in objects.items()}
        self._zones = list(rings)
        self._tree = shapely.STRtree([shapely.Polygon(ring) for ring in rings.values()])
        self._near: dict[str, tuple] = {}
        self._ranges: dict[str, dict] = {}

    def differences(self, client, query: int, document: dict[str, Any]) -> str:
        """Return what is wrong with a client's answer, empty if nothing is."""
        plan, held = parse_plan(document), client.answers.get(query)
        if plan.kind in TIME_JOINS:  # what they have told is compared as events
            return ""
        if held is None:
            return "no answer"
        if isinstance(plan, JoinPlan):
            return self._join_differences(plan, held)
        if isinstance(plan, RangePlan) and plan.emit == "changes":
            name = repr(document)
            if name not in self._ranges:
                self._ranges[name] = answer(self.objects[plan.stream], document)
            return "; ".join(differences(held, self._ranges[name])[:3])
        try:
            check(plan, self._worlds[plan.stream], _One(client, query), query)
        except (AssertionError, KeyError) as error:
            return f"{document}: {error!r:.400}"
        return ""

    def _join_differences(self, plan, held):
        """Compare pairs; those that are just as far apart as the distance may be either."""
        least, most = self._pairs(plan)
        found = set(held)
        wrong = [f"{pair} missing" for pair in least - found] + [f"{pair} too many" for pair in found - most]
        if plan.partners.source == "layer":
            objects = self.objects[plan.stream]
            wrong += [f"{pair} is old" for pair in found & most if held[pair]["time_us"] != objects[pair[0]]["time_us"]]
        return "; ".join(sorted(wrong)[:3])

    def _pairs(self, plan):
        """Return the pairs that must be in an answer, and those that may."""
        keys = list(self.objects[plan.stream])
        boxes = [self.objects[plan.stream][key]["bounds"] for key in keys]
        here = [boxes_meet(box, plan.area, EARTH) for box in boxes]
        if plan.partners.source == "layer":
            rows, zones = self._tree.query(shapely.points(np.array(boxes)[:, :2]), predicate="intersects")
            pairs = {(keys[row], self._zones[zone]) for row, zone in zip(rows, zones, strict=True) if here[row]}
            return pairs, pairs
        rows, others, metres = self._neighbours(plan.stream, np.array(boxes)[:, :2])
        pairs = [
            (keys[row], keys[other], apart)
            for row, other, apart in zip(rows.tolist(), others.tolist(), metres.tolist(), strict=True)
            if here[row]
        ]
        limit = plan.partners.distance
        least = {(row, other) for row, other, apart in pairs if apart < limit - EXACT_M}
        return least, {(row, other) for row, other, apart in pairs if apart <= limit + EXACT_M}

    def _neighbours(self, stream, places):
        """Return all pairs of near objects as two arrays of rows, and how far apart they are in metres."""
        if stream not in self._near:
            points = shapely.points(places)
            rows, others = shapely.STRtree(points).query(points, predicate="dwithin", distance=NEAR_DEG)
            rows, others = rows[rows != others], others[rows != others]
            self._near[stream] = rows, others, points_m(*places[rows].T, *places[others].T)
        return self._near[stream]


class _One(Held):
    """One answer that a client holds, as the oracle's `check` looks at it."""

    def __init__(self, client, query):
        super().__init__(_Answers({query: client.answers[query]}))


class _Answers:
    def __init__(self, answers):
        self.answers = answers

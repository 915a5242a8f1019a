"""Plans of every kind, at their limits or near them, drawn by chance from a seed."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from bench.attacks.prepare import SHIPS, TUGS
from bench.joins import LAYER
from bench.scenarios import COUNTRY
from streaming.kinds.aggregate.plan import MAX_THRESHOLDS
from streaming.kinds.approach.plan import MOST_AHEAD_S
from streaming.kinds.areas import MAX_AREA_METRES, MAX_AREA_VERTICES
from streaming.kinds.closest_approach.plan import MOST_WITHIN_M
from streaming.kinds.join.times import MOST_S
from streaming.kinds.knn.plan import MAX_ALPHA, MAX_K
from streaming.kinds.parts import MAX_FILTERS, MAX_KEYS, MAX_TRANSFORMS
from streaming.kinds.rule.conditions import MOST_QUERIES

Plan = dict[str, Any]
WORLD = {"lo": [-180.0, -90.0], "hi": [180.0, 90.0]}
WHERES = (
    "",
    "speed_mps > 5",
    "kind = 'ship' AND speed_mps BETWEEN 0 AND 30",
    " OR ".join(f"speed_mps * {number} - course_deg > {number}" for number in range(1, 45)),
    " AND ".join(f"kind LIKE '%{letter}%' OR course_deg <> {ord(letter)}" for letter in "ship"),
    "CASEI(kind) IN ('ship', 'SHIP') AND NOT speed_mps IS NULL",
)


class Plans:
    """Draws plans that are legal.

    Parameters
    ----------
    rng : random.Random
    known : sequence of int
        The numbers of queries that rules are about; it may grow.

    Attributes
    ----------
    kinds : dict of str to callable
        What draws a plan of each kind.
    """

    def __init__(self, rng: random.Random, known: Sequence[int]) -> None:
        self._rng, self._known = rng, known
        self.kinds: dict[str, Callable[[], Plan]] = {
            "range": self._range,
            "moving range": self._moving,
            "knn": self._nearest,
            "join": self._join,
            "aggregate": self._aggregate,
            "window join": self._window,
            "interval join": self._interval,
            "encounter": self._encounter,
            "sketch": self._sketch,
            "rule": self._rule,
            "approach": self._approach,
            "track": self._track,
            "closest approach": self._closest,
        }

    def draw(self) -> Plan:
        """Draw a plan of any kind."""
        return self._rng.choice(list(self.kinds.values()))()

    def _limit(self, most: float, least: float = 1.0) -> float:
        """Draw the most, half of it, or anything between."""
        return self._rng.choice([most, most, most / 2, self._rng.uniform(least, most)])

    def _place(self) -> list[float]:
        return [self._rng.uniform(*COUNTRY[::2]), self._rng.uniform(*COUNTRY[1::2])]

    def _stream(self) -> str:
        return self._rng.choice([SHIPS, TUGS])

    def _ring(self, vertices: int, reach: float, middle: Sequence[float]) -> list[list[float]]:
        """Return a ring that does not cross itself, with spikes."""
        ring = []
        for number in range(vertices):
            turn, far = 2 * math.pi * number / vertices, reach * (1.0 - 0.3 * (number % 2))
            ring.append([round(middle[0] + far * math.cos(turn), 6), round(middle[1] + far * math.sin(turn), 6)])
        return ring

    def _shape(self) -> dict[str, Any]:
        middle = self._place()
        vertices = round(self._limit(MAX_AREA_VERTICES - 1, 4))
        ring = self._ring(vertices, self._rng.uniform(1, 8), middle)
        line = [[round(COUNTRY[0] + 10 * n / vertices, 6), round(middle[1] + math.sin(n), 6)] for n in range(vertices)]
        return self._rng.choice(
            [
                {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
                {"circle": {"center": middle, "radius_m": self._limit(MAX_AREA_METRES)}},
                {"corridor": {"line": line, "width_m": self._limit(500_000.0)}},
            ]
        )

    def _area(self) -> dict[str, Any]:
        return self._rng.choice([WORLD, {"lo": list(COUNTRY[:2]), "hi": list(COUNTRY[2:])}, self._shape()])

    def _near(self) -> dict[str, Any]:
        """Draw a shape of at most half of the earth, for kinds that take no more."""
        middle = self._place()
        ring = self._ring(round(self._limit(MAX_AREA_VERTICES - 1, 4)), 8, middle)
        return {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}

    def _filters(self) -> list[dict[str, Any]]:
        keys = {"keys": [f"object {number}" for number in range(MAX_KEYS)]}
        return self._rng.choice([[], [{"box": WORLD}] * MAX_FILTERS, [keys, *[{"box": WORLD}] * (MAX_FILTERS - 1)]])

    def _transform(self) -> list[dict[str, Any]]:
        step = self._rng.choice([{"enlarge_m": 100_000.0}, {"enlarge_factor": 2.0}, {"enlarge_value": 1.0}])
        return [step] * self._rng.choice([0, 1, MAX_TRANSFORMS])

    def _common(self) -> Plan:
        return {"stream": self._stream(), "where": self._rng.choice(WHERES), "filters": self._filters()}

    def _partners(self) -> dict[str, Any]:
        near = {"predicate": "dwithin", "distance": self._limit(MAX_AREA_METRES)}
        return {"stream": self._stream(), "where": self._rng.choice(WHERES), **near}

    def _around(self) -> dict[str, Any]:
        focus = [{"at": self._place()}, {"key": f"object {self._rng.randrange(400)}", "stream": self._stream()}]
        return self._rng.choice(focus)

    def _range(self) -> Plan:
        report = self._rng.choice(["inside", "outside"])
        return self._common() | {
            "compare": self._rng.choice([WORLD, {"lo": list(COUNTRY[:2]), "hi": list(COUNTRY[2:])}]),
            "report": report,
            "transform": self._transform(),
            "emit": self._rng.choice(["changes", "membership", "all"]),
            **({"area": self._area()} if report == "inside" else {}),
        }

    def _moving(self) -> Plan:
        vertices = round(self._limit(MAX_AREA_VERTICES, 3))
        ranges = [
            {"radius": self._limit(MAX_AREA_METRES)},
            {"half_widths": [self._limit(1e6), self._limit(1e6)]},
            {"polygon": self._ring(vertices, 500_000.0, [0.0, 0.0])},
        ]
        return self._common() | {"kind": "range", "around": self._around() | self._rng.choice(ranges)}

    def _nearest(self) -> Plan:
        k, alpha = round(self._limit(MAX_K)), self._limit(MAX_ALPHA, 0.0)
        return self._common() | {"kind": "knn", "k": k, "alpha": alpha, "around": self._around()}

    def _join(self) -> Plan:
        sides = [
            self._partners(),
            {"layer": LAYER, "predicate": self._rng.choice(["within", "disjoint", "intersects"])},
        ]
        return self._common() | {"kind": "join", "area": self._area(), "join": self._rng.choice(sides)}

    def _aggregate(self) -> Plan:
        asked = {
            "function": self._rng.choice(["min", "max", "sum", "avg"]),
            "property": "speed_mps",
            "group_by": self._rng.choice(["kind", "course_deg"]),
            "thresholds": [{"above": number, "for_s": number} for number in range(MAX_THRESHOLDS)],
        }
        return self._common() | {"area": self._area(), "aggregate": asked}

    def _window(self) -> Plan:
        window_s = self._limit(MOST_S, 10.0)
        slide_s = window_s / self._rng.choice([1, 10, 99])
        return self._common() | {
            "kind": "window_join",
            "join": self._partners(),
            "window_s": window_s,
            "slide_s": slide_s,
        }

    def _interval(self) -> Plan:
        span = {"lower_s": -self._limit(MOST_S / 2), "upper_s": self._limit(MOST_S / 2)}
        return self._common() | {"kind": "interval_join", "join": self._partners(), **span}

    def _encounter(self) -> Plan:
        away = {"away_from": {"layer": LAYER, "distance": self._limit(1e6)}}
        return (
            self._common()
            | {"kind": "encounter", "join": self._partners(), "for_s": self._rng.choice([0, 60, MOST_S])}
            | self._rng.choice([{}, away])
        )

    def _sketch(self) -> Plan:
        return {"stream": self._stream(), "kind": "sketch", "ask": [{"question": "mean", "features": ["speed_mps"]}]}

    def _rule(self) -> Plan:
        watched = self._rng.choices(list(self._known) or [1], k=self._rng.choice([1, 2, MOST_QUERIES]))
        whens = [
            {"any": [{"query": number} for number in dict.fromkeys(watched)]},
            {"count": {"query": watched[0], "above": 0}},
        ]
        return {"stream": SHIPS, "kind": "rule", "when": self._rng.choice(whens), "for_s": self._limit(60.0, 0.0)}

    def _approach(self) -> Plan:
        return self._common() | {"kind": "approach", "target": self._near(), "within_s": self._limit(MOST_AHEAD_S)}

    def _track(self) -> Plan:
        noise = {"accuracy": self._limit(1e6, 0.0), "gap_s": self._limit(86_400.0, 0.0)}
        return self._common() | {"kind": "track", "area": self._near(), **noise}

    def _closest(self) -> Plan:
        soon = {"within_m": self._limit(MOST_WITHIN_M), "within_s": self._limit(MOST_AHEAD_S)}
        return self._common() | {"kind": "closest_approach", "area": self._area(), **soon}

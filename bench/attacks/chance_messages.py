"""Messages of every type that a client may send, at their limits or near them, drawn by chance from a seed."""

import datetime
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.attacks.chance_plans import WHERES, WORLD, Plans
from bench.attacks.prepare import SHIPS, TUGS
from bench.joins import LAYER

# What draws the value of a field, by its name.
Values = dict[str, Callable[[], Any]]
MOST = 2**53 - 1
MOST_NAMES, MOST_SAMPLE, MOST_QUERIES, MOST_SHOWN, MOST_STREAMS = 120, 1_000, 1_000, 100, 32
MOST_KEY, MOST_TEXT, MOST_ADDRESS, MOST_ROWS, MOST_PAGE, MOST_LOOK = 1_000, 2_000, 4_000, 10_000, 100, 31
# Types of which each of some fields alone is given: either is enough, and both are too many.
EITHER = {
    "query.subscribe": ("query", "queries"),
    "query.unsubscribe": ("query", "queries"),
    "sketch.ask": ("plan", "text"),
}


class Messages:
    """Draws messages that are legal.

    Parameters
    ----------
    rng : random.Random
    plans : Plans
    known : sequence of int
        The numbers of queries that messages are about; it may grow.
    """

    def __init__(self, rng: random.Random, plans: Plans, known: Sequence[int]) -> None:
        self._rng, self._plans, self._known = rng, plans, known
        self._values = {**self._numbers(), **self._names(), **self._places(), **self._texts()}
        # Fields that mean something else in a type.
        self._others: dict[tuple[str, str], Callable[[], Any]] = {
            **{(f"table.{what}", "limit"): lambda: MOST_ROWS for what in ("get", "query", "join")},
            ("incident.list", "after"): self._number,
            ("link.add", "queries"): lambda: [self._number() for _ in range(MOST_SHOWN)],
            ("sketch.ask", "plan"): plans.kinds["sketch"],
        }

    def _numbers(self) -> Values:
        rng = self._rng
        return {
            **dict.fromkeys(("query", "incident", "view", "link"), self._number),
            **dict.fromkeys(("shared", "paused", "shown", "mine", "joined"), lambda: rng.random() < 0.5),
            "queries": lambda: self._many(self._number, MOST_QUERIES),
            "after": lambda: {"mine": True, "query": self._number()},
            "confirmed": lambda: True,
            "distance": lambda: rng.choice([0, 1e4, 2e7]),
            "hours": lambda: rng.choice([1, 366 * 24]),
            "limit": lambda: MOST_PAGE,
            "look": lambda: rng.choice([None, MOST_LOOK]),
            "team": lambda: None,
            "time_us": lambda: time.time_ns() // 1000,
        }

    def _names(self) -> Values:
        rng = self._rng
        return {
            "format": lambda: rng.choice(["json", "arrow"]),
            "layers": lambda: self._many(lambda: LAYER, MOST_QUERIES),
            "names": lambda: self._many(lambda: "speed_mps", MOST_SAMPLE),
            "partner": lambda: "",
            "predicate": lambda: rng.choice(["dwithin", "dwithin", "intersects", "boxes"]),
            "severity": lambda: rng.choice(["info", "warning", "critical"]),
            "sign": lambda: rng.choice(["+", "-"]),
            "space": lambda: "earth",
            "spaces": lambda: ["earth"] * MOST_STREAMS,
            "state": lambda: rng.choice(["open", "closed"]),
            "stream": lambda: rng.choice([SHIPS, TUGS]),
            "to": lambda: rng.choice([None, "other"]),
        }

    def _places(self) -> Values:
        rng = self._rng
        return {
            **dict.fromkeys(("area", "box"), lambda: WORLD),
            **dict.fromkeys(("table", "left", "right"), self._table),
            **dict.fromkeys(("streams", "whole"), lambda: [SHIPS, TUGS]),
            "objects": lambda: self._many(lambda: {"speed_mps": rng.randrange(30), "kind": "ship"}, MOST_SAMPLE),
            "plan": self._plans.draw,
            "span": lambda: {"from": time.time() - rng.choice([1, 240, 1e9])},
            "watched": lambda: {SHIPS: self._many(lambda: f"object {rng.randrange(400)}", MOST_QUERIES)},
        }

    def _texts(self) -> Values:
        rng = self._rng
        return {
            "address": lambda: self._text(MOST_ADDRESS),
            "held": lambda: {"epoch": self._text(MOST_NAMES), "batch": rng.randrange(MOST)},
            "key": lambda: rng.choice([f"object {rng.randrange(400)}", self._text(MOST_KEY)]),
            "name": lambda: self._text(MOST_NAMES),
            "search": lambda: rng.choice(["", self._text(MOST_NAMES)]),
            "text": lambda: self._text(MOST_TEXT),
            "until": lambda: datetime.datetime.now(datetime.UTC).isoformat(),
            "where": lambda: rng.choice(WHERES[1:]),
        }

    def draw(self, kind: str, names: Sequence[str]) -> dict[str, Any]:
        """Draw a message of a type that has fields with some names."""
        without = self._rng.choice(EITHER.get(kind, ("",)))
        drawn = {name: self._others.get((kind, name), self._values[name]) for name in names if name != without}
        return {"type": kind, **{name: draw() for name, draw in drawn.items()}}

    def _number(self) -> int:
        return self._rng.choice([*self._known, *self._known, 1, MOST])

    def _many(self, one: Callable[[], Any], most: int) -> list[Any]:
        return [one() for _ in range(self._rng.choice([1, most]))]

    def _text(self, most: int) -> str:
        return "".join(self._rng.choices("aé船 %'", k=most - 1)) + "x"

    def _table(self) -> dict[str, str]:
        return self._rng.choice([{"stored": SHIPS}, {"stored": TUGS}, {"layer": LAYER}])

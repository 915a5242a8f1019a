"""The queries of a run, of each kind whose answer lasts, and the layer that they join with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FLEET, WIRE, PAIRED, ZONES = "fleet", "wire", "paired", "zones"
FEATURES, FEATURE_DEG = 60, 0.08
# Where most objects are: they walk within two degrees, and pile up at the ends.
REACH_DEG = 1.8


class Workload:
    """Draws plans and layers from a seed.

    Parameters
    ----------
    seed : int
    objects : int
        Of the stream `FLEET`.
    """

    def __init__(self, seed: int, objects: int) -> None:
        self._random, self._objects, self._drawn = np.random.default_rng(seed), objects, 0

    def plan(self) -> dict[str, Any]:
        """Return the next plan; the kinds take turns."""
        draw = PLANS[self._drawn % len(PLANS)]
        self._drawn += 1
        return {"stream": FLEET, **draw(self)}

    def layer(self) -> dict[str, list[list[float]]]:
        """Return the rings of a new version of the layer, by the key of the feature."""
        rings = {}
        for number in range(FEATURES):
            low = self._random.uniform(-REACH_DEG, REACH_DEG, 2).round(4) + 0.00005  # no object lies on a border
            high = low + FEATURE_DEG
            corners = [(low[0], low[1]), (high[0], low[1]), (high[0], high[1]), (low[0], high[1]), (low[0], low[1])]
            rings[str(number)] = [[round(float(x), 7), round(float(y), 7)] for x, y in corners]
        return rings

    def box(self, side: float) -> dict[str, list[float]]:
        """Return a random box."""
        low = self._random.uniform(-REACH_DEG, REACH_DEG - side, 2).round(4)
        return {"lo": low.tolist(), "hi": (low + side).round(4).tolist()}

    def around(self, **shape: Any) -> dict[str, Any]:
        """Return a range about a random object."""
        return {"key": f"f{self._random.integers(self._objects)}", **shape}

    def metres(self, low: int, high: int) -> int:
        """Return a random length."""
        return int(self._random.integers(low, high))

    def place(self) -> list[float]:
        """Return a random place."""
        return self._random.uniform(-REACH_DEG, REACH_DEG, 2).round(4).tolist()


# Each kind of query and of shape; ranges are most of them, as in use.
PLANS: list[Callable[[Workload], dict[str, Any]]] = [
    lambda draw: {"compare": draw.box(0.2)},
    lambda draw: {"around": draw.around(radius=draw.metres(5_000, 20_000))},
    lambda draw: {"compare": draw.box(0.3), "where": "speed_mps > 10"},
    lambda draw: {"around": draw.around(), "kind": "knn", "k": draw.metres(1, 8)},
    lambda draw: {"compare": draw.box(0.3), "emit": "membership"},
    lambda draw: {"kind": "join", "area": draw.box(1.0), "join": {"layer": ZONES, "predicate": "intersects"}},
    lambda draw: {"area": draw.box(0.3), "compare": draw.box(0.2), "report": "outside"},
    lambda draw: {
        "kind": "join",
        "area": draw.box(0.6),
        "join": {"stream": FLEET, "predicate": "dwithin", "distance": draw.metres(300, 900)},
    },
    lambda draw: {"stream": WIRE, "compare": draw.box(0.5), "transform": [{"enlarge_value": 0.05}]},
    lambda draw: {"compare": draw.box(0.5), "aggregate": {"function": "count", "group_by": "kind"}},
    lambda draw: {
        "around": draw.around(half_widths=[draw.metres(5_000, 20_000)] * 2),
        "aggregate": {"function": "max", "property": "speed_mps"},
    },
    lambda draw: {"around": {"at": draw.place()}, "kind": "knn", "k": draw.metres(1, 8), "emit": "membership"},
]


def write_layer(rings: dict[str, list[list[float]]], path: Path) -> None:
    """Write a version of the layer as GeoJSON."""
    features = [
        {
            "type": "Feature",
            "properties": {"number": key},
            "geometry": {"type": "Polygon", "coordinates": [ring]},
        }
        for key, ring in rings.items()
    ]
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))

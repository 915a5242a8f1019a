"""Example queries, which every user sees until they remove them."""

from pathlib import Path
from typing import Any

from streaming.layers import ImportOptions
from webapp.layers import Label, begin_import, run_import
from webapp.models import Layer, Query
from webapp.queries import queries
from webapp.words.refusals import Refused

PORT_AREAS = Path(__file__).with_name("port_areas.geojson")
LAYER = Label("port_areas", "Port areas")

# Name and plan. Their areas lie in the part of the map that is shown first.
EXAMPLES: list[tuple[str, dict[str, Any]]] = [
    ("Ships in the Kattegat", {"stream": "ships", "compare": {"lo": [10.3, 56.0], "hi": [12.5, 57.9]}}),
    (
        "Ships in port areas",
        {"stream": "ships", "kind": "join", "join": {"layer": LAYER.name, "predicate": "within"}},
    ),
    (
        "Buses within 100 m of each other",
        {
            "stream": "buses",
            "kind": "join",
            "area": {"lo": [24.85, 60.15], "hi": [25.1, 60.22]},
            "join": {"stream": "buses", "predicate": "dwithin", "distance": 100},
        },
    ),
    (
        # About 85 to 98 of the simulated ships are there, so the count crosses the threshold now and then.
        "Number of ships in the Gulf of Finland",
        {
            "stream": "ships",
            "compare": {"lo": [22.5, 59.2], "hi": [29.9, 60.6]},
            "aggregate": {"function": "count", "thresholds": [{"above": 90}]},
        },
    ),
]


def import_port_areas() -> Layer | None:
    """Import the layer of port areas; return None if a layer of that name exists already."""
    if Layer.objects.filter(name=LAYER.name).exists():
        return None
    return run_import(begin_import(None, LAYER), PORT_AREAS, ImportOptions(key="id"))


def make_examples() -> list[Query]:
    """Save the examples whose stream and layer exist, and return them.

    The next reconciliation tells the engine: when a worker starts, or within half a minute.
    """
    return list(filter(None, (make_example(name, plan) for name, plan in EXAMPLES)))


def make_example(name: str, plan: dict[str, Any]) -> Query | None:
    """Save and return an example; return None if its plan is refused, for instance without its stream."""
    try:
        document = queries.checked_plan(plan)
    except Refused:
        return None
    return Query.objects.create(owner=None, name=name, stream=document["stream"], plan=document, shared=True)

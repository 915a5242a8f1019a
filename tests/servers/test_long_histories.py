"""Long seeded histories of many objects: handoffs in every batch, restarts, compaction of segments."""

import numpy as np
import pytest

from streaming.elements import bounds_of, point_elements
from streaming.plans import parse_plan, plan_document
from tests.oracle import satisfies
from tests.servers.harness import Client, Engine

PLANS = [
    parse_plan({"stream": "ships", **document})
    for document in (
        {"area": {"lo": [-5, -5], "hi": [5, 5]}},
        {"compare": {"lo": [-3, -9], "hi": [4, 2]}, "report": "outside", "where": "speed_mps > 3"},
        {
            "compare": {"lo": [0, 0], "hi": [2, 3]},
            "transform": [{"enlarge_m": 100_000}],
            "area": {"lo": [-9, -9], "hi": [9, 9]},
        },
        {"area": {"lo": [-180, -90], "hi": [180, 90]}},
    )
]


def moved(rng, places, key, version):
    """Move objects by a random step; return their new elements."""
    places[key] = np.clip(places[key] + rng.normal(0, 2, (len(key), 2)), -10, 10)
    properties = [{"speed_mps": int(speed)} for speed in rng.integers(0, 7, len(key))]
    return point_elements("ships", [f"ship {k}" for k in key], np.full(len(key), version), places[key], properties)


@pytest.mark.separate_seeds(*range(4))
def test_objects_handed_between_regions_never_leave_the_answer_and_none_is_lost(tmp_path, seed):
    rng, engine, client = np.random.default_rng(seed), Engine(tmp_path, 3, 9), Client()
    places, truth = rng.uniform(-10, 10, (200, 2)), {}
    control = [
        {"op": "register", "query": number, "revision": 1, "plan": plan_document(plan)}
        for number, plan in enumerate(PLANS)
    ]
    for batch in range(40):
        keys = rng.integers(0, 200, rng.integers(0, 120))
        tables = [moved(rng, places, part, 10 * batch + step) for step, part in enumerate(np.array_split(keys, 3))]
        stale = moved(rng, places, rng.integers(0, 100, 5), batch - 1)
        for table in (*tables, stale):
            columns = (table["key"].to_pylist(), table["version"].to_pylist(), bounds_of(table["bounds"]).tolist())
            for key, version, box, text in zip(*columns, table["properties"].to_pylist(), strict=True):
                if key not in truth or version >= truth[key][0]:
                    truth[key] = (version, box, text)
        if rng.random() < 0.2:
            engine.restart()
        client.receive(engine.run([("ships", batch, table) for table in (*tables, stale)], control))
        control = []
        for number, plan in enumerate(PLANS):
            expected = {k: (box, text) for k, (_, box, text) in truth.items() if satisfies(plan, "ships", box, text)}
            assert client.answers[number] == expected, (batch, number)

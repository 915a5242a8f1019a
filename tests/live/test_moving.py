"""Real feeds through the whole of Lookout: queries that follow ships and aircraft equal brute force at the end."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import AIS_CSV
from tests.live.test_recordings import FLIGHTS_DECODER, as_it_is, flights
from tests.live.truth import AtRest, decoded, moving_differences, newest

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

QUERIES = 20


@dataclass(frozen=True)
class Feed:
    """A recorded feed, and a property of its elements with numbers, one with names."""

    stream: str
    path: Callable
    decoder: dict
    number: str
    group: str

    def plans(self, keys: list[str]) -> list[dict]:
        """Return a plan for each focal object: of every kind, and of every shape."""
        shapes = (
            {"radius": 20_000},
            {"radius": 250_000},
            {"half_widths": [40_000, 15_000]},
            {"polygon": [[-30_000, -10_000], [60_000, 0], [0, 20_000], [-10_000, 90_000]]},
        )
        kinds = (
            lambda around, shape: {"around": around | shape},
            lambda around, shape: {"around": around, "kind": "knn", "k": 10},
            lambda around, shape: {"around": around, "kind": "knn", "k": 200, "max_distance": 400_000},
            lambda around, shape: {
                "around": around | shape,
                "aggregate": {"function": "count", "group_by": self.group},
            },
            lambda around, shape: {"around": around | shape, "aggregate": {"function": "max", "property": self.number}},
        )
        return [
            {"stream": self.stream, **kinds[n % len(kinds)]({"key": key}, shapes[n // len(kinds) % len(shapes)])}
            for n, key in enumerate(keys)
        ]


FEEDS = [
    Feed("followed_ships", as_it_is("ais/AISdata.csv.gz"), AIS_CSV, "speed_mps", "status"),
    Feed("followed_aircraft", flights, FLIGHTS_DECODER, "speed_mps", "callsign"),
]


@pytest.mark.long
@pytest.mark.parametrize("feed", FEEDS, ids=lambda feed: feed.stream)
async def test_twenty_queries_that_move_equal_brute_force_at_the_end(live, shared_data, tmp_path, feed):
    path = feed.path(shared_data, tmp_path)
    elements = decoded(feed.decoder, feed.stream, read_recording(path))
    objects = newest(elements)
    world = AtRest(feed.stream, objects)
    keys = sorted(objects)[:: len(objects) // QUERIES][:QUERIES]
    live.add_stream(feed.stream, {"kind": "file", "path": str(path), "speed": 0}, feed.decoder, enabled=False)
    async with live.monitor() as monitor:
        plans = {await monitor.register(key, plan): plan for key, plan in zip(keys, feed.plans(keys), strict=True)}
        await monitor.running(*plans)
        live.enable_stream(feed.stream)

        def wrong():
            return moving_differences(monitor, plans, world)

        def drained():
            return live.health(feed.stream).get("state") == "finished" and live.log.backlog() == 0

        await monitor.until(drained, lambda: f"{live.health(feed.stream)}")
        await monitor.until(lambda: not wrong(), lambda: f"{wrong()}")
        for query in plans:
            await monitor.snapshot(query)
        assert wrong() == {}
        assert monitor.faults == []
        assert sum(len(monitor.answers[query]) for query in plans) > 200
        live.remove_stream(feed.stream)
        await monitor.until(
            lambda: not any(answer.keys() - {""} for answer in monitor.answers.values()),
            "the stream's objects leave every answer",
        )
        for query in plans:
            await monitor.request("query.cancel", query=query)
        assert monitor.faults == []

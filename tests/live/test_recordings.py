"""Recorded feeds through gateway, Redis, Spark, hub and websocket: answers equal brute force over what was decoded."""

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from pyarrow import csv

from streaming.gateway.presets import FLIGHTS_DECODER
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import BUSES
from tests.live.truth import answer, decoded, differences, newest

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

WORLD = {"lo": [-180, -90], "hi": [180, 90]}


def as_it_is(path: str) -> Callable[[Path, Path], Path]:
    """Return a function that finds a recording."""
    return lambda recordings, _: recordings / path


def flights(recordings: Path, folder: Path) -> Path:
    """Write the states of all aircraft as CSV in the order of time, as the demonstration does; return its path."""
    states = orjson.loads(gzip.decompress((recordings / "adsb" / "switzerland.json.gz").read_bytes()))
    table = pa.Table.from_pylist([state | {"timestamp": state["timestamp"] // 1000} for state in states])
    csv.write_csv(table.sort_by([("timestamp", "ascending"), ("icao24", "ascending")]), folder / "flights.csv")
    return folder / "flights.csv"


@dataclass(frozen=True)
class Recording:
    """A recorded feed, how many objects with a position are in it, and rectangles that cut through them.

    Parameters
    ----------
    stream : str
    path : function of the recordings' folder and a scratch folder
        Where the feed is.
    decoder : dict
    objects : int
    box, other, around : tuple of float
        West, south, east, north; the last one holds the first.
    where : str
        A filter that some objects pass.
    heights : tuple of float, optional
        Metres, where objects have altitudes.
    """

    stream: str
    path: Callable[[Path, Path], Path]
    decoder: dict
    objects: int
    box: tuple[float, float, float, float]
    other: tuple[float, float, float, float]
    around: tuple[float, float, float, float]
    where: str
    heights: tuple[float, float] | None = None

    def plan(self, compare: dict, **keys) -> dict:
        """Return a plan on this stream."""
        return {"stream": self.stream, "compare": compare, **keys}

    def before(self) -> dict[str, dict]:
        """Return plans, by name, to be registered before the first element."""
        box = corners(self.box)
        return {
            "world": self.plan(WORLD),
            "inside": self.plan(box),
            "outside": self.plan(box, report="outside"),
            "filtered": self.plan(box, where=self.where),
            "around": self.plan(box, area=corners(self.around), report="outside"),
            "metres": self.plan(box, transform=[{"enlarge_m": 3000}]),
        } | self._high(box, "high")

    def during(self) -> dict[str, dict]:
        """Return plans, by name, to be registered while elements come."""
        other = corners(self.other)
        return {
            "late": self.plan(other),
            "late outside": self.plan(other, report="outside", where=self.where),
            "late enlarged": self.plan(other, transform=[{"enlarge_value": 0.01}, {"enlarge_m": 500}]),
        } | self._high(other, "late high")

    def _high(self, box, name):
        if self.heights is None:
            return {}
        low, high = self.heights
        return {name: self.plan({"lo": [*box["lo"], low], "hi": [*box["hi"], high]})}


def corners(box):
    west, south, east, north = box
    return {"lo": [west, south], "hi": [east, north]}


RECORDINGS = [
    Recording(
        "danish_ships",
        as_it_is("ais/ais-sample.txt.gz"),
        {"kind": "ais"},
        1503,
        box=(10, 55, 12, 56.5),
        other=(8.5, 54, 11, 57),
        around=(9, 54.5, 13, 57),
        where="speed_mps > 5",
    ),
    Recording(
        "sbs_aircraft",
        as_it_is("adsb/sbs1.txt"),
        {"kind": "sbs"},
        4,
        box=(9.3, 48.4, 9.7, 48.6),
        other=(9.15, 48.3, 9.55, 48.6),
        around=(9, 48, 10, 49),
        where="speed_mps > 200",
        heights=(8000, 13000),
    ),
    Recording(
        "swiss_aircraft",
        flights,
        FLIGHTS_DECODER,
        842,
        box=(6.5, 46, 8.5, 47.5),
        other=(8, 46.5, 10, 48),
        around=(6, 45.5, 9, 48),
        where="speed_mps > 200",
        heights=(3000, 10500),
    ),
    Recording(
        "louisville_buses",
        as_it_is("gtfsrt/louisville-positions.pb.bz2"),
        {"kind": "gtfs_realtime"},
        78,
        box=(-85.8, 38.15, -85.7, 38.25),
        other=(-85.75, 38.2, -85.6, 38.3),
        around=(-85.82, 38.1, -85.65, 38.3),
        where="current_status = 'incoming at'",
    ),
    Recording(
        "austin_buses",
        as_it_is("buses/2015-03-07.csv.gz"),
        BUSES,
        158,
        box=(-97.76, 30.24, -97.7, 30.32),
        other=(-97.74, 30.2, -97.68, 30.3),
        around=(-97.8, 30.2, -97.68, 30.4),
        where="headsign = 'SOUTHBOUND'",
    ),
]


@pytest.mark.long
@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.stream)
async def test_answers_equal_brute_force_at_the_end_of_a_recording(live, shared_data, tmp_path, recording):
    path = recording.path(shared_data, tmp_path)
    elements = decoded(recording.decoder, recording.stream, read_recording(path))
    objects = newest(elements)
    assert len(objects) == recording.objects
    live.add_stream(recording.stream, {"kind": "file", "path": str(path), "speed": 0}, recording.decoder, enabled=False)
    plans = {}
    async with live.monitor("ann", "json") as texts, live.monitor("ann", "arrow") as tables:
        for name, plan in recording.before().items():
            plans[await texts.register(name, plan)] = plan
        edited = await texts.register("edited", recording.plan(corners(recording.other), report="outside"))
        cancelled = await texts.register("cancelled", recording.plan(WORLD))
        for query in plans:
            await tables.subscribe(query)
        (view,) = (await tables.view([recording.stream], corners(recording.other))).values()
        await texts.running(*plans, edited, cancelled)

        world = next(iter(plans))
        live.enable_stream(recording.stream)
        await texts.until(lambda: texts.answers.get(world), "the first element")
        for name, plan in recording.during().items():
            plans[await texts.register(name, plan)] = plan
        plans[edited] = recording.plan(corners(recording.box), where=recording.where)
        await texts.request("query.edit", query=edited, plan=plans[edited])
        await texts.request("query.cancel", query=cancelled)
        await tables.view([recording.stream], corners(recording.around))
        await tables.subscribe(edited)

        expected = {query: answer(objects, plan) for query, plan in plans.items()}
        expected[view] = answer(objects, recording.plan(corners(recording.around)))
        assert len({len(rows) for rows in expected.values()}) > 3  # the rectangles cut
        expected_texts = {query: rows for query, rows in expected.items() if query != view} | {cancelled: {}}
        expected_tables = {query: rows for query, rows in expected.items() if query in (*tables.subscribed, view)}

        def wrong():
            return {
                f"{monitor.form} {query}": found[:5]
                for monitor, rows_of in ((texts, expected_texts), (tables, expected_tables))
                for query, rows in rows_of.items()
                if (found := differences(monitor.answers.get(query), rows))
            }

        def ended():
            health = live.health(recording.stream)
            return health["state"] == "finished" and live.log.backlog() == 0 and not wrong()

        await texts.until(ended, lambda: f"{live.health(recording.stream)}, backlog {live.log.backlog()}, {wrong()}")
        asked = [(monitor, query) for monitor in (texts, tables) for query in monitor.subscribed - {cancelled}]
        await asyncio.gather(*(monitor.snapshot(query) for monitor, query in asked))
        assert wrong() == {}
        assert texts.faults == tables.faults == []
        health = live.health(recording.stream)
        assert (health["elements"], health["merged"]) == (elements.num_rows, 0)

        live.remove_stream(recording.stream)
        await texts.until(lambda: not any(texts.answers.values()), "the stream's objects leave every answer")
        for query in plans:
            await texts.request("query.cancel", query=query)
        assert texts.faults == tables.faults == []

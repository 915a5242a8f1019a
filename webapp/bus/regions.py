"""The regions of a space, as its engine reports them, and changes of the region map by hand.

References
----------
BBoxDB Streams (2022), section 5.4: pre-partitioning from a sample of stored data, or of an area.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from django.conf import settings
from django.utils.translation import gettext

from streaming.elements import bounds_of
from streaming.history import EVER, History
from streaming.history.reader import asked
from streaming.operators.partitioners import PARTITIONERS, partitioned
from streaming.operators.region_map import InvalidMap, RegionMap
from streaming.region_reports import Load, RegionChanges, loads_of
from streaming.spaces import Space
from webapp.bus.redis import log
from webapp.models import Layer
from webapp.models.layers import layer_store
from webapp.words.refusals import Refused

# A load that is older than this says nothing about now.
FRESH_US = 5_000_000
# How many places of a layer, of a stream or of an area decide where regions are cut.
SAMPLE = 20_000
# How long the stored elements of a stream may be read for that, in seconds.
SAMPLE_S = 3.0
POLL_S = 0.1


@dataclass(frozen=True)
class Regions:
    """The region map in force, and what the engine told last about its regions.

    Parameters
    ----------
    region_map : RegionMap
    loads : list of Load
        One for each region; empty directly after a change of the map.
    tasks : int
        How many tasks run the regions.
    workers : dict of int to str
        The host and the process of each task.
    places : ndarray of float64, shape (K, n)
        Where elements were lately.
    """

    region_map: RegionMap
    loads: list[Load]
    tasks: int
    workers: dict[int, str]
    places: np.ndarray

    @classmethod
    def of(cls, space: Space, told: Mapping[str, Any]) -> "Regions | None":
        """Return the regions that an engine reports, see `streaming.logs.regions_of`; None if it reports none."""
        if "map" not in told:
            return None
        known = RegionMap.of(space, told["map"])
        tasks = int(told.get("tasks", 1))
        workers = {task: told[f"worker:{task}"] for task in range(tasks) if f"worker:{task}" in told}
        places = np.array(told.get("places", []), dtype=np.float64).reshape(-1, space.n)
        return cls(known, loads_of(told, known) or [], tasks, workers, places)

    def task_of(self, region: int) -> int:
        """Return the task that runs a region."""
        return self.region_map.places[region] % self.tasks

    def document(self, now_us: int) -> dict[str, Any]:
        """Return the regions as the message ``regions`` has them."""
        cells, n = self.region_map.cells.tolist(), self.region_map.space.n
        shown = min(2, n)
        regions = []
        for region, cell in enumerate(cells):
            load = self.loads[region] if self.loads else Load(0, 0.0, 0)
            idle = now_us - load.at_us > FRESH_US
            regions.append(
                {
                    "region": region,
                    "lo": cell[:shown],
                    "hi": cell[n : n + shown],
                    "objects": load.objects,
                    "elements_per_s": 0.0 if idle else round(load.elements_per_s, 1),
                    "cores": 0.0 if idle else round(load.cores, 4),
                    "task": self.task_of(region),
                    "worker": self.workers.get(self.task_of(region), ""),
                }
            )
        return {"number": self.region_map.number, "tasks": self.tasks, "regions": regions}


def changes_document(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the changes of a region map, see `region_reports.changes_of`, as the message ``regions`` has them."""
    return [
        {
            "at_us": change["at_us"],
            "number": change["map"]["number"],
            "regions": len(change["map"]["places"]),
            "why": change["map"]["why"],
        }
        for change in changes
    ]


def now_us() -> int:
    """Return the time in microseconds since 1970 UTC."""
    return time.time_ns() // 1000


def changes_now(space: Space) -> list[dict[str, Any]]:
    """Return the newest changes of a space's region map, the newest first; see `changes_document`."""
    found = log(space.name)
    return changes_document(RegionChanges(found.client, space.name).newest())


def regions_now(space: Space) -> Regions:
    """Return the regions of a space.

    Raises
    ------
    Refused
        ``regions`` where the engine has not reported any yet.
    """
    found = Regions.of(space, log(space.name).regions())
    if found is None:
        raise Refused(
            "regions",
            gettext("the engine of %(name)s must have reported its regions; it has not") % {"name": space.name},
        )
    return found


def await_map(space: Space, wanted: RegionMap, most_s: float) -> bool:
    """Wait until a map is in force, `most_s` seconds at most; return whether it is."""
    until_s, kept = time.monotonic() + most_s, RegionChanges(log(space.name).client, space.name)
    while not any(change["map"] == wanted.document() for change in kept.newest(2)):
        if time.monotonic() > until_s:
            return False
        time.sleep(POLL_S)
    return True


def split(space: Space, region: int, partitioner: str, who: str) -> RegionMap:
    """Split a region where a partitioner says; return the map that was sent to the engine.

    Raises
    ------
    Refused
        ``regions`` where the region cannot be split so.
    """
    known = regions_now(space)
    mine = known.places[known.region_map.region_of(np.tile(known.places, 2)) == region]
    return _sent(space, known, lambda: PARTITIONERS[partitioner](known.region_map, region, mine), who)


def merge(space: Space, low: int, high: int, who: str) -> RegionMap:
    """Merge the two sides of a cut; return the map that was sent to the engine; see `split`."""
    known = regions_now(space)
    return _sent(space, known, lambda: known.region_map.merged(low, high), who)


def move(space: Space, region: int, task: int, who: str) -> RegionMap:
    """Give a region to another task; return the map that was sent to the engine; see `split`."""
    known = regions_now(space)
    return _sent(space, known, lambda: known.region_map.moved(region, task), who)


def cut(space: Space, partitioner: str, regions: int, places: np.ndarray, who: str) -> RegionMap:
    """Cut the whole space anew, so that some places are shared evenly; return the map that was sent; see `split`.

    Parameters
    ----------
    space : Space
    partitioner : str
        One of `PARTITIONERS`.
    regions : int
    places : ndarray of float64, shape (K, n)
        See `places_of`.
    who : str
        Who wants it.
    """
    known = regions_now(space)

    def made() -> RegionMap:
        later = partitioned(space, partitioner, places, regions)
        if later.regions < regions:
            raise InvalidMap(
                "%(count)s places must be enough to cut %(regions)s regions; got %(made)s",
                count=len(places),
                regions=regions,
                made=later.regions,
            )
        # Keep what is spread over the tasks spread: regions that are beside each other are mostly busy together.
        return replace(later, places=tuple(region % max(1, known.tasks) for region in range(later.regions)))

    return _sent(space, known, made, who, f"cut anew into {regions} regions")


def _sent(space: Space, known: Regions, change: Callable[[], RegionMap], who: str, what: str = "") -> RegionMap:
    """Make a map, and send it to the engine as the one that follows the known one."""
    try:
        later = change()
    except InvalidMap as error:
        raise Refused("regions", str(error)) from None
    later = later.after(known.region_map, f"{what or later.differs(known.region_map)}, by {who}")
    log(space.name).send("regions", map=later.document())
    return later


def places_of(space: Space, source: str) -> np.ndarray:
    """Return the places of a source: ``lately``, ``layer:`` with a layer's name, or ``stored:`` with a stream's.

    Returns
    -------
    ndarray of float64, shape (K, n)
        Of at most `SAMPLE` elements or features, low corners.

    Raises
    ------
    Refused
        ``regions`` where the source has no places.
    """
    kind, _, name = source.partition(":")
    if kind == "lately":
        places = regions_now(space).places
    elif kind == "layer":
        layer = Layer.objects.filter(name=name, space=space.name, version__isnull=False).first()
        places = layer_store().sample(name, layer.version, SAMPLE)[:, : space.n] if layer else np.empty((0, space.n))
    else:
        places = _stored_places(space, name)
    if not len(places):
        raise Refused(
            "regions",
            gettext("the source must have places to cut between; got %(source)s, which has none")
            % {"source": f"{source!r}"},
        )
    return places


def places_in_area(space: Space, lo: list[float], hi: list[float]) -> np.ndarray:
    """Return places that are spread evenly over an area, (SAMPLE, n).

    Raises
    ------
    Refused
        ``regions`` where the area is none.
    """
    whole_lo, whole_hi = (np.array([getattr(axis, side) for axis in space.dimensions]) for side in ("lo", "hi"))
    low, high = whole_lo.copy(), whole_hi.copy()
    low[: len(lo)], high[: len(hi)] = lo, hi
    low, high = np.maximum(low, whole_lo), np.minimum(high, whole_hi)
    if not (low < high).all():
        raise Refused(
            "regions",
            gettext("an area must have lo below hi and lie in the space; got %(lo)s to %(hi)s") % {"lo": lo, "hi": hi},
        )
    places = np.random.default_rng(0).uniform(low, high, (SAMPLE, space.n))
    places[:, len(lo) :] = -np.inf  # cut only across what the area bounds
    return places


def _stored_places(space: Space, stream: str) -> np.ndarray:
    """Return places of stored elements, as many as can be read in `SAMPLE_S`."""
    found, until_s = [], time.monotonic() + SAMPLE_S

    def take(rows: pa.Table) -> None:
        if rows.num_rows and time.monotonic() < until_s:
            step = max(1, rows.num_rows // 1_000)
            found.append(bounds_of(rows["bounds"])[::step, : space.n])

    asked(lambda: History(settings.HISTORY_DIR, space).collect(stream, pc.scalar(True), EVER, take))
    places = np.concatenate(found) if found else np.empty((0, space.n))
    return places[:: max(1, len(places) // SAMPLE)]

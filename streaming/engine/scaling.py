"""Regions follow the load: a region that is too busy is split or given to another task, and idle ones are merged.

A change is decided from what the tasks report, and is a control entry. So it takes force in one batch, for all servers
at once. Only one change is under way at a time. It is decided only if the reason holds for several observations, and
after each change the loads have time to settle.

References
----------
Synopsis (2017), sections 3.3 and 3.4: scaling out and in, by thresholds that hold for some observations, with a
stabilisation period after each operation.
BBoxDB Streams (2022), section 3.4: regions above an upper threshold are split, those below a lower one are merged;
section 5.4: pre-partitioning.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from streaming.language import gettext, gettext_noop
from streaming.logs import Log
from streaming.operators.partitioners import PARTITIONERS, partitioned
from streaming.operators.region_map import InvalidMap, RegionMap
from streaming.region_reports import Load, RegionChanges, loads_of
from streaming.settings import EngineSettings

logger = logging.getLogger("lookout.engine")

_REASONS = {
    "busy": gettext_noop("one task is busier than the others"),
    "fast": gettext_noop("a region gets very many elements"),
    "large": gettext_noop("a region has very many objects"),
    "idle": gettext_noop("two regions are nearly idle"),
}


@dataclass(frozen=True)
class Thresholds:
    """When regions are split, moved and merged.

    Parameters
    ----------
    imbalance : float
        How many times the mean load of the tasks the busiest one must have.
    busy : float
        The load from which on a task is worth relieving, in cores.
    idle : float
        The load up to which two regions may be merged, in cores.
    most_objects : int
        A region with more objects is split.
    least_elements_per_s : float
        A region that gets fewer elements a second is not split for being busy: what it takes is not for its elements
        then, and both parts would take as much.
    most_elements_per_s : float
        A region that gets more elements a second is split; two that get less than half of it together may be merged.
    observations, idle_observations : int
        For how many observations in turn a reason to split or move, or to merge, must hold.
    cool_down_s : float
        The time after a change without another one, in seconds.
    most_regions : int
    """

    imbalance: float = 1.3
    busy: float = 0.3
    idle: float = 0.02
    most_objects: int = 2_000_000
    least_elements_per_s: float = 1_000.0
    most_elements_per_s: float = 200_000.0
    observations: int = 5
    idle_observations: int = 60
    cool_down_s: float = 15.0
    most_regions: int = 64


@dataclass(frozen=True)
class _Observation:
    """What the regions of a map did between two looks.

    Parameters
    ----------
    cores : ndarray of float64, shape (R,)
        Processor time, in seconds per second.
    elements_per_s : ndarray of float64, shape (R,)
    objects : ndarray of int64, shape (R,)
    places : ndarray of float64, shape (K, n)
        Where elements were lately.
    """

    cores: np.ndarray
    elements_per_s: np.ndarray
    objects: np.ndarray
    places: np.ndarray


@dataclass
class Scaler:
    """Decides about the next region map, from one observation to the next.

    Parameters
    ----------
    tasks : int
    partitioner : str
        One of `PARTITIONERS`.
    least : int
        So many regions are never merged further.
    thresholds : Thresholds
    """

    tasks: int
    partitioner: str = "kd"
    least: int = 1
    thresholds: Thresholds = field(default_factory=Thresholds)
    _known: tuple[int, float, Sequence[Load]] | None = field(default=None, init=False)
    _held: dict[str, int] = field(default_factory=dict, init=False)
    _changed_s: float = field(default=float("-inf"), init=False)

    def observed(self, known: RegionMap, loads: Sequence[Load], places: np.ndarray, now_s: float) -> RegionMap | None:
        """Return the map that is to follow, None if the known one should stay.

        Parameters
        ----------
        known : RegionMap
            That is in force.
        loads : sequence of Load
            Of its regions.
        places : ndarray of float64, shape (K, n)
            Where elements were lately.
        now_s : float
            A clock that never goes back, in seconds.
        """
        before, self._known = self._known, (known.number, now_s, loads)
        if before is None or before[0] != known.number or before[1] >= now_s:
            self._held.clear()
            return None
        span_s = now_s - before[1]
        rate = np.array(
            [(now.cpu_s - was.cpu_s, now.elements - was.elements) for was, now in zip(before[2], loads, strict=True)]
        )
        if (rate < 0).any():  # a task has started again
            self._held.clear()
            return None
        cores, elements_per_s = rate.T / span_s
        seen = _Observation(cores, elements_per_s, np.array([load.objects for load in loads]), places)
        self._held = {reason: self._held.get(reason, 0) + 1 for reason in self._reasons(known, seen)}
        if now_s - self._changed_s < self.thresholds.cool_down_s:
            return None
        limits = self.thresholds
        for reason in _REASONS:
            if self._held.get(reason, 0) >= (limits.idle_observations if reason == "idle" else limits.observations):
                later = getattr(self, f"_{reason}")(known, seen)
                if later is not None:
                    self._changed_s = now_s
                    self._held.clear()
                    return later.after(
                        known,
                        gettext("%(later)s, since %(reasons)s")
                        % {"later": later.differs(known), "reasons": _REASONS[reason]},
                    )
        return None

    def _reasons(self, known: RegionMap, seen: _Observation) -> Iterator[str]:
        limits, tasks = self.thresholds, self._tasks(known, seen)
        if tasks.max() > max(limits.busy, limits.imbalance * tasks.mean()):
            yield "busy"
        if known.regions < limits.most_regions:
            if seen.elements_per_s.max() > limits.most_elements_per_s:
                yield "fast"
            if seen.objects.max() > limits.most_objects:
                yield "large"
        if known.regions > self.least and any(self._may_merge(pair, seen) for pair in known.siblings):
            yield "idle"

    def _may_merge(self, pair: tuple[int, int], seen: _Observation) -> bool:
        """Tell whether two regions are idle enough to be one, and would not be split again."""
        limits, both = self.thresholds, list(pair)
        return (
            seen.cores[both].sum() < limits.idle
            and seen.objects[both].sum() <= limits.most_objects // 2
            and seen.elements_per_s[both].sum() <= limits.most_elements_per_s / 2
        )

    def _tasks(self, known: RegionMap, seen: _Observation) -> np.ndarray:
        return np.bincount(np.array(known.places) % self.tasks, weights=seen.cores, minlength=self.tasks)

    def _busy(self, known: RegionMap, seen: _Observation) -> RegionMap | None:
        """Move the region that balances the tasks best, or split the busiest region of the busiest task."""
        tasks = self._tasks(known, seen)
        most, least = int(tasks.argmax()), int(tasks.argmin())
        mine = np.flatnonzero(np.array(known.places) % self.tasks == most)
        gap = tasks[most] - tasks[least]
        left = np.abs(gap - 2 * seen.cores[mine])
        best = int(left.argmin())
        if left[best] < gap / 2:
            return known.moved(int(mine[best]), least)
        busiest, limits = int(mine[seen.cores[mine].argmax()]), self.thresholds
        if known.regions >= limits.most_regions or seen.elements_per_s[busiest] < limits.least_elements_per_s:
            return None
        return self._split(known, busiest, seen)

    def _fast(self, known: RegionMap, seen: _Observation) -> RegionMap | None:
        return self._split(known, int(seen.elements_per_s.argmax()), seen)

    def _large(self, known: RegionMap, seen: _Observation) -> RegionMap | None:
        return self._split(known, int(seen.objects.argmax()), seen)

    def _split(self, known: RegionMap, region: int, seen: _Observation) -> RegionMap | None:
        """Return the map with a region split, one part with the least busy task; None if it cannot be split."""
        mine = seen.places[known.region_of(np.hstack([seen.places, seen.places])) == region]
        try:
            later = PARTITIONERS[self.partitioner](known, region, mine)
        except InvalidMap as error:
            logger.info("region %d is not split: %s", region, error)
            return None
        place = int(self._tasks(known, seen).argmin())
        for new in range(known.regions, later.regions):
            later = later.moved(new, place if (new - known.regions) % 2 == 0 else known.places[region])
        return later

    def _idle(self, known: RegionMap, seen: _Observation) -> RegionMap:
        """Merge the two regions that do the least together."""
        pairs = [pair for pair in known.siblings if self._may_merge(pair, seen)]
        return known.merged(*min(pairs, key=lambda pair: seen.cores[list(pair)].sum()))


class RegionWatch:
    """Looks at what the tasks report of their regions, keeps the changes, and sends the maps that are to follow.

    Parameters
    ----------
    settings : EngineSettings
    log : Log
    tasks : int
        Of an interval.
    """

    def __init__(self, settings: EngineSettings, log: Log, tasks: int) -> None:
        self._settings, self._space, self._log = settings, settings.space, log
        self._changes = RegionChanges(log.client, settings.space.name)
        limits = Thresholds(most_objects=settings.most_objects, most_elements_per_s=settings.most_elements_per_s)
        self._scaler = Scaler(tasks, settings.partitioner, settings.regions, limits)
        self._known: RegionMap | None = None
        self._is_cut = False

    def look(self, now_s: float) -> None:
        """Look once, at a time by a clock that never goes back; to be called about once a second."""
        told = self._log.regions()
        if "map" not in told:
            return
        known = RegionMap.of(self._space, told["map"])
        if known != self._known:
            self._known = known
            self._changes.keep(known)
        loads = loads_of(told, known)
        if loads is None or not self._settings.scaling:
            return
        self._scaler.partitioner = self._changes.partitioner() or self._settings.partitioner
        places = np.array(told["places"], dtype=np.float64).reshape(-1, self._space.n)
        later = self._first_cut(known, loads, places) or self._scaler.observed(known, loads, places, now_s)
        if later is not None:
            logger.info("space %s: %s", self._space.name, later.why)
            self._log.send("regions", map=later.document())

    def _first_cut(self, known: RegionMap, loads: Sequence[Load], places: np.ndarray) -> RegionMap | None:
        """Return the map for the places of the first elements, once there are enough of them."""
        first, elements = self._settings.first_elements, sum(load.elements for load in loads)
        if known.number or self._is_cut or not first or elements < first or self._scaler.partitioner == "grid":
            return None
        self._is_cut = True
        later = partitioned(self._space, self._scaler.partitioner, places, known.regions)
        if later.regions < known.regions:
            return None
        return later.after(
            known,
            gettext("cut into %(regions)s regions at the places of the first elements") % {"regions": later.regions},
        )

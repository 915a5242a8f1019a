"""The home server of some objects: it knows the newest version of each, and the region that keeps it.

References
----------
PLACE* (2007), section 3.1: an object's home server tracks which regional server the object visits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.runs import first_of_runs, order_of_hashes, running_maximum
from streaming.servers.control.registry import MICROSECONDS, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import taken
from streaming.servers.region_bits import EVERYWHERE, bits_of, regions_of
from streaming.servers.routing import Routed
from streaming.servers.sorted_runs import Column, Run, SortedRuns

# An expired object is forgotten, and its version with it, once it has been silent for this long as well. The server
# looks for such objects each time a hundredth of this has passed.
FORGET_AFTER_US = 24 * 3600 * MICROSECONDS

FORGET_EVERY_US = FORGET_AFTER_US // 100


@dataclass(frozen=True)
class Home:
    """State of a home server.

    Every object that a region keeps has an entry: without it, an object that appears in another region would stay in
    the old one as well.

    Parameters
    ----------
    entries : SortedRuns
        With `COLUMNS`, by `key_hash`; one row an object. `copies` has the bit of each region that may have a copy of
        the object because its stream is joined with a stream.
    now_us : int
        The latest tick.
    forgotten_us : int
        When the server last looked for objects to forget.
    parts : mapping of str to Any
        What ways of evaluation keep there, by the names of their parts; see `home_turn.HomePart`.
    """

    entries: SortedRuns
    now_us: int = 0
    forgotten_us: int = 0
    parts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, following: int = 0) -> "Home":
        """Return the state of a server that knows no object yet; the number of the first run is `following`."""
        return cls(SortedRuns(no_columns(), following=following))


COLUMNS = {"stream": np.int64, "version": np.int64, "region": np.int32, "heard_us": np.int64, "copies": np.int64}


def no_columns() -> dict[str, np.ndarray]:
    """Return the columns of a home server's entries, without rows."""
    return {name: np.empty(0, dtype=kind) for name, kind in COLUMNS.items()}


@dataclass(frozen=True)
class Accepted:
    """The elements of a micro-batch that are no older than those that were known of their objects.

    Parameters
    ----------
    rows : ndarray of int64, shape (K,)
        Their rows, ordered by key and arrival.
    place : ndarray of int64, shape (N,)
        The region where each of the elements lies, also of others.
    known : tuple of ndarray of int64
        The `key_hash` of the objects that were known before, ascending, and when they were heard.
    """

    rows: np.ndarray
    place: np.ndarray
    known: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class HomeOutput:
    """What a home server makes of the elements of a micro-batch.

    Parameters
    ----------
    tables : mapping of str to Routed
        What it sends to the regions: rows with `elements.tracked_schema`, and a region for each row.

        * `arrivals` has the newest element of each updated object, for the region where it lies. `departures` has the
          same elements, for the regions that the objects left.
        * `passing` has accepted elements that a newer one in the same batch supersedes, of the streams in
          `Registry.streams_in_full`.
        * Joined streams have three more tables: `copies` has the newest elements, for the other regions that must know
          them; `removed_copies` has them for the regions that no longer need them; `superseded_copies` has the copies
          of `passing`.
        * `focals` has the newest elements of focal objects, once for every region, however many queries follow them.
    accepted : Accepted
    stale : dict of int to int
        By stream, how many versions were older than the newest known.
    stale_elements : pyarrow.Table
        Those of them of the streams that are stored; see `belated.routed`.
    """

    tables: Mapping[str, Routed]
    accepted: Accepted
    stale: dict[int, int]
    stale_elements: pa.Table


def step(home: Home, elements: pa.Table, control: ControlStep) -> tuple[Home, HomeOutput]:
    """Accept the elements of a micro-batch, and decide which regions receive them.

    Parameters
    ----------
    home : Home
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival.
    control : ControlStep
        Both of its registries have the same region map.

    Returns
    -------
    home : Home
    outbox : HomeOutput
    """
    after, entries, region_map = control.after, home.entries, control.after.region_map
    if after.reach.exceeds(control.before.reach):  # then regions fetch elements, and this server does not know which
        entries = entries.with_column("copies", EVERYWHERE)
    order, key_hash, start = _ordered(elements)
    part, row = entries.find(key_hash)
    known = part >= 0
    were = entries.take(part[known], row[known])
    least = np.full(len(key_hash), np.iinfo(np.int64).min)
    least[known] = were["version"]
    accepted, newest = _accept(elements["version"].to_numpy()[order], start, least)
    rows = order[newest[newest >= 0]]
    stream, bounds = elements["stream"].to_numpy(), bounds_of(elements["bounds"])
    heard, before, copies = newest >= 0, np.full(len(key_hash), -1), np.zeros(len(key_hash), dtype=np.int64)
    before[known], copies[known] = were["region"], were["copies"]
    known_us, stale = (key_hash[known], were["heard_us"]), _passing(stream, order, ~accepted, frozenset(after.stored))
    key_hash, known, before, copies = key_hash[heard], known[heard], before[heard], copies[heard]
    region = (places := region_map.region_of(bounds))[rows]
    moved = np.flatnonzero(known & (before != region))
    passing = _passing(stream, order, accepted & ~_mask(newest[newest >= 0], len(order)), after.streams_in_full)
    met, passing_met = (_met(elements, some, bounds[some], stream[some], after) for some in (rows, passing))
    # When a stream is no longer joined, the regions remove its elements by themselves.
    left = regions_of(copies, region_map.regions) & ~met & met.any(axis=1, keepdims=True)
    tables = {
        "arrivals": Routed(elements, rows, region),
        "departures": Routed(elements, rows[moved], before[moved]),
        "passing": Routed(elements, passing, places[passing]),
        "copies": _for_regions(elements, rows, _without(met, region)),
        "removed_copies": _for_regions(elements, rows, _without(left, before)),
        "superseded_copies": _for_regions(elements, passing, _without(passing_met, places[passing])),
        "focals": _for_regions(elements, rows, np.isin(key_hash, after.focal)[:, None] & np.ones_like(met)),
    }
    taken_on = Accepted(order[accepted], places, known_us)
    outbox = HomeOutput(tables, taken_on, _counted(stream[order[~accepted]]), taken(elements, stale))
    columns = _columns(elements, rows, region, met)
    entries = entries.put(key_hash, columns, np.empty(0, dtype=np.int64), int((~known).sum()))
    return _settled(replace(home, entries=entries), control), outbox


def _columns(elements: pa.Table, rows: np.ndarray, region: np.ndarray, met: np.ndarray) -> dict[str, np.ndarray]:
    """Return what is kept of objects, given their newest elements and the regions that know them."""
    columns = {name: elements[name].to_numpy()[rows] for name in ("stream", "version", "heard_us")}
    return columns | {"region": region.astype(COLUMNS["region"]), "copies": bits_of(met)}


def routed(home: Home, rows: pa.Table) -> Routed:
    """Return result tuples of objects for the regions of these; of objects that are not known, for the first region."""
    key = np.unique(rows["key_hash"].to_numpy())
    part, row = home.entries.find(key)
    region = np.zeros(len(key), dtype=np.int64)
    known = part >= 0
    region[known] = home.entries.take(part[known], row[known], ("region",))["region"]
    return Routed(rows, np.arange(rows.num_rows), region[np.searchsorted(key, rows["key_hash"].to_numpy())])


def _ordered(elements: pa.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the order of elements by key and arrival, the distinct keys, and where each begins in that order."""
    key_hash = elements["key_hash"].to_numpy()
    order = order_of_hashes(key_hash)
    key_hash = key_hash[order]
    start = np.flatnonzero(first_of_runs(key_hash))
    return order, key_hash[start], start


def _accept(version: np.ndarray, start: np.ndarray, least: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tell which elements are not stale, and which of them is the last of each key.

    Parameters
    ----------
    version : ndarray of int64, shape (N,)
        Ordered by key and arrival.
    start : ndarray of int64, shape (K,)
        Where each key begins.
    least : ndarray of int64, shape (K,)
        The version of each key that is known.

    Returns
    -------
    accepted : ndarray of bool, shape (N,)
    newest : ndarray of int64, shape (K,)
        The position of the last accepted element of each key, -1 if there is none.
    """
    of = np.repeat(np.arange(len(start)), np.diff(np.r_[start, len(version)]))
    accepted = version >= least[of]
    if ((version[1:] < version[:-1]) & (of[1:] == of[:-1])).any():  # else none is older than one before it
        accepted &= version >= running_maximum(of, np.where(accepted, version, np.iinfo(np.int64).min))
    newest = np.full(len(start), -1)
    chosen = np.flatnonzero(accepted)
    newest[of[chosen]] = chosen
    return accepted, newest


def _counted(streams: np.ndarray) -> dict[int, int]:
    """Return the number of rows of each stream."""
    return dict(zip(*(column.tolist() for column in np.unique(streams, return_counts=True)), strict=True))


def _mask(positions: np.ndarray, length: int) -> np.ndarray:
    mask = np.zeros(length, dtype=bool)
    mask[positions] = True
    return mask


def _passing(
    stream: np.ndarray, order: np.ndarray, superseded: np.ndarray, streams_in_full: frozenset[int]
) -> np.ndarray:
    """Return the rows of superseded elements of some streams, ascending."""
    if not streams_in_full:
        return np.empty(0, dtype=np.int64)
    rows = np.sort(order[superseded])
    return rows[np.isin(stream[rows], list(streams_in_full))]


def _met(
    elements: pa.Table, rows: np.ndarray, bounds: np.ndarray, stream: np.ndarray, registry: Registry
) -> np.ndarray:
    """Tell which regions must know which elements for joins with streams, bool of shape (N, regions)."""
    reach, region_map = registry.reach, registry.region_map
    if not reach:
        return np.zeros((len(bounds), region_map.regions), dtype=bool)
    properties = elements["properties"].take(pa.array(rows)) if reach.ahead else None
    return reach.regions(bounds, stream, region_map, properties)


def _without(met: np.ndarray, region: np.ndarray) -> np.ndarray:
    """Return `met` (N, regions) without one region in each row; -1 removes none."""
    return met & (np.arange(met.shape[1]) != region[:, None])


def _for_regions(elements: pa.Table, rows: np.ndarray, met: np.ndarray) -> Routed:
    """Return each of the elements at rows once for every region that it met."""
    at, region = np.nonzero(met)
    return Routed(elements, rows[at], region)


def _settled(home: Home, control: ControlStep) -> Home:
    """Advance the clock; drop the objects of dropped streams and, at intervals, those that expired long ago."""
    now_us = max(home.now_us, control.now_us)
    entries, forgotten_us = home.entries, home.forgotten_us
    if control.applied.dropped:
        dropped = list(control.applied.dropped)
        entries = _without_entries(entries, lambda run: np.isin(run.columns["stream"], dropped))
    if now_us - forgotten_us >= FORGET_EVERY_US:
        entries = _without_entries(entries, lambda run: _long_silent(run.columns, now_us, control.after))
        forgotten_us = now_us
    return replace(home, entries=entries.settled(), now_us=now_us, forgotten_us=forgotten_us)


def _long_silent(columns: Mapping[str, Column], now_us: int, registry: Registry) -> np.ndarray:
    """Return the rows of objects that expired at least `FORGET_AFTER_US` ago."""
    rows = np.flatnonzero(columns["heard_us"] < now_us - FORGET_AFTER_US)
    return rows[columns["heard_us"][rows] < now_us - registry.ttl_of(columns["stream"][rows])]


def _without_entries(entries: SortedRuns, matching: Callable[[Run], np.ndarray]) -> SortedRuns:
    part, row = entries.select(matching)
    keys = np.sort(entries.keys(part, row))
    return entries.put(keys[:0], no_columns(), keys, -len(keys))

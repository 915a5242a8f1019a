"""The home server of some objects: it knows the newest version of each, and the region that keeps it.

References
----------
PLACE* (2007), section 3.1: an object's home server tracks which regional server the object visits.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.partitioners import Partitioner
from streaming.operators.runs import find, last_of_runs
from streaming.servers.control.registry import MICROSECONDS
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import taken

# An expired object is forgotten, and its version with it, once it has been silent for this long as well. The server
# looks for such objects each time a hundredth of this has passed.
FORGET_AFTER_US = 24 * 3600 * MICROSECONDS

FORGET_EVERY_US = FORGET_AFTER_US // 100

# The bits of an int64. More regions than that share bits; a shared bit stands for all of its regions.
BITS = 64

# All bits set: every region may have a copy.
EVERYWHERE = -1


@dataclass(frozen=True)
class Home:
    """State of a home server: one entry per object, ordered by `key_hash`; all arrays int64 of shape (M,).

    `copies` has the bit of each region that may have a copy of the object because its stream is joined with a stream.
    Every object that a region keeps has an entry: without it, an object that appears in another region would stay in
    the old one as well.
    """

    key_hash: np.ndarray
    stream: np.ndarray
    version: np.ndarray
    region: np.ndarray
    heard_us: np.ndarray
    copies: np.ndarray
    now_us: int = 0
    forgotten_us: int = 0

    @classmethod
    def empty(cls) -> "Home":
        """Return the state of a server that has not heard of any object."""
        return cls(*np.empty((len(COLUMNS), 0), dtype=np.int64))


COLUMNS = tuple(column.name for column in fields(Home))[:6]


@dataclass(frozen=True)
class HomeOutput:
    """What a home server sends to the regions: tables with `elements.tracked_schema`, and a region for each row.

    `arrivals` has the newest element of each updated object, for the region where it lies. `departures` has the same
    elements, for the regions that the objects left. `passing` has accepted elements that a newer one in the same batch
    supersedes, of the streams in `Registry.streams_in_full`. Joined streams have three more tables: `copies` has the
    newest elements, for the other regions that must know them; `removed_copies` has them for the regions that no longer
    need them; `superseded_copies` has the copies of `passing`. `focals` has the newest elements of focal objects, once
    for every region, however many queries follow them. `stale` counts, by stream, the versions that were older than the
    newest known.
    """

    arrivals: tuple[pa.Table, np.ndarray]
    departures: tuple[pa.Table, np.ndarray]
    passing: tuple[pa.Table, np.ndarray]
    copies: tuple[pa.Table, np.ndarray]
    removed_copies: tuple[pa.Table, np.ndarray]
    superseded_copies: tuple[pa.Table, np.ndarray]
    focals: tuple[pa.Table, np.ndarray]
    stale: dict[int, int]


def step(home: Home, elements: pa.Table, partitioner: Partitioner, control: ControlStep) -> tuple[Home, HomeOutput]:
    """Accept the elements of a micro-batch, and decide which regions receive them.

    Parameters
    ----------
    home : Home
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival.
    partitioner : Partitioner
    control : ControlStep

    Returns
    -------
    home : Home
    outbox : HomeOutput
    """
    after = control.after
    if after.reach.exceeds(control.before.reach):  # then regions fetch elements, and this server does not know which
        home = replace(home, copies=np.full(len(home.copies), EVERYWHERE))
    order, accepted, newest = _accept(home, elements)
    rows = order[newest]
    arrivals = elements.take(rows)
    key_hash = arrivals["key_hash"].to_numpy()
    region = partitioner.region_of(bounds_of(arrivals["bounds"]))
    position, known = find(home.key_hash, key_hash)
    before = np.full(len(rows), -1, dtype=np.int64)
    before[known] = home.region[position[known]]
    moved = np.flatnonzero(known & (before != region))
    passing = _passing(elements, order, accepted & ~_mask(newest, len(order)), after.streams_in_full)
    passing_region = partitioner.region_of(bounds_of(passing["bounds"]))
    met = _met(arrivals, after.reach, partitioner)
    left = np.zeros_like(met)
    left[known] = _regions(home.copies[position[known]], partitioner.regions) & ~met[known]
    # When a stream is no longer joined, the regions remove its elements by themselves.
    left &= met.any(1)[:, None]
    outbox = HomeOutput(
        (arrivals, region),
        (taken(arrivals, moved), before[moved]),
        (passing, passing_region),
        _for_regions(arrivals, _without(met, region)),
        _for_regions(arrivals, _without(left, before)),
        _for_regions(passing, _without(_met(passing, after.reach, partitioner), passing_region)),
        _for_regions(arrivals, np.isin(key_hash, after.focal)[:, None] & np.ones(partitioner.regions, dtype=bool)),
        _counted(elements["stream"].to_numpy()[order[~accepted]]),
    )
    home = _put(home, arrivals, region, _bits(met), position, known)
    return _forget(home, control), outbox


def _accept(home, elements):
    """Return the order by key and arrival, which elements are not stale, and the last such element of each key."""
    key_hash, version = elements["key_hash"].to_numpy(), elements["version"].to_numpy()
    order = np.argsort(key_hash, kind="stable")
    key_hash, version = key_hash[order], version[order]
    position, known = find(home.key_hash, key_hash)
    accepted = np.ones(len(order), dtype=bool)
    accepted[known] = version[known] >= home.version[position[known]]
    accepted &= version >= _running_maximum(key_hash, np.where(accepted, version, np.iinfo(np.int64).min))
    chosen = np.flatnonzero(accepted)
    return order, accepted, chosen[last_of_runs(key_hash[chosen])]


def _counted(streams):
    """Return the number of rows of each stream."""
    return dict(zip(*(column.tolist() for column in np.unique(streams, return_counts=True)), strict=True))


def _running_maximum(key, value):
    """Return, for each position, the largest value so far of the same key; `key` is ordered."""
    values, rank = np.unique(value, return_inverse=True)
    offset = np.cumsum(np.r_[False, key[1:] != key[:-1]][: len(key)]) * len(values)
    return values[np.maximum.accumulate(offset + rank) - offset]


def _mask(positions, length):
    mask = np.zeros(length, dtype=bool)
    mask[positions] = True
    return mask


def _passing(elements, order, superseded, streams_in_full):
    if not streams_in_full:
        return elements.slice(0, 0)
    rows = np.sort(order[superseded])
    wanted = np.isin(elements["stream"].to_numpy()[rows], list(streams_in_full))
    return taken(elements, rows[wanted])


def _met(elements, reach, partitioner):
    """Tell which regions must know which elements for joins with streams, bool of shape (N, regions)."""
    if not reach:
        return np.zeros((elements.num_rows, partitioner.regions), dtype=bool)
    return reach.regions(bounds_of(elements["bounds"]), elements["stream"].to_numpy(), partitioner)


def _bits(met):
    """Return the regions of each row (N, regions) as bits of an int64."""
    bit = np.uint64(1) << (np.arange(met.shape[1]) % BITS).astype(np.uint64)
    return np.bitwise_or.reduce(np.where(met, bit, np.uint64(0)), axis=1, initial=0).view(np.int64)


def _regions(bits, regions):
    """Tell which regions have their bit set, bool of shape (N, regions)."""
    shift = (np.arange(regions) % BITS).astype(np.uint64)
    return (bits.view(np.uint64)[:, None] >> shift) & np.uint64(1) != 0


def _without(met, region):
    """Return `met` (N, regions) without one region in each row; -1 removes none."""
    return met & (np.arange(met.shape[1]) != region[:, None])


def _for_regions(elements, met):
    """Return each element once for every region that it met, and these regions."""
    rows, region = np.nonzero(met)
    return taken(elements, rows), region


def _put(home, arrivals, region, copies, position, known):
    """Return the state with the arrived objects' new versions, regions and times."""
    new = {
        "key_hash": arrivals["key_hash"].to_numpy(),
        "stream": arrivals["stream"].to_numpy(),
        "version": arrivals["version"].to_numpy(),
        "region": region,
        "heard_us": arrivals["heard_us"].to_numpy(),
        "copies": copies,
    }
    columns = {}
    for name, values in new.items():
        column = getattr(home, name).copy()
        column[position[known]] = values[known]
        columns[name] = np.insert(column, position[~known], values[~known])
    return replace(home, **columns)


def _forget(home, control):
    """Advance the clock; drop the objects of dropped streams and, at intervals, those that expired long ago."""
    now_us = max(home.now_us, control.now_us)
    keep, forgotten_us = np.ones(len(home.key_hash), dtype=bool), home.forgotten_us
    if control.applied.dropped:
        keep &= ~np.isin(home.stream, list(control.applied.dropped))
    if now_us - forgotten_us >= FORGET_EVERY_US:
        keep &= home.heard_us >= now_us - np.maximum(control.after.ttl_of(home.stream), FORGET_AFTER_US)
        forgotten_us = now_us
    if not keep.all():
        home = replace(home, **{name: getattr(home, name)[keep] for name in COLUMNS})
    return replace(home, now_us=now_us, forgotten_us=forgotten_us)

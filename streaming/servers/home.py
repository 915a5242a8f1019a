"""The home server of a part of the objects: it knows the newest version of each and the region where that lies.

References
----------
PLACE* (2007), section 3.1: an object's home server tracks which regional server the object visits.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of, element_schema
from streaming.operators.partitioners import Partitioner
from streaming.operators.runs import find, last_of_runs
from streaming.servers.registry import MICROSECONDS
from streaming.spaces import Space

# Versions of objects unheard of for so long are forgotten; looked for once in such a time's hundredth.
FORGET_AFTER_US = 24 * 3600 * MICROSECONDS
FORGET_EVERY_US = FORGET_AFTER_US // 100


def tracked_schema(space: Space) -> pa.Schema:
    """Return the columns of elements on their way to a region: `element_schema`, `stream` and `heard_us`.

    `stream` is an int64 `elements.stream_number`; `heard_us` the wall-clock time at which the gateway received it.
    """
    schema = element_schema(space)
    for name in ("stream", "heard_us"):
        schema = schema.append(pa.field(name, pa.int64(), nullable=False))
    return schema


@dataclass(frozen=True)
class Home:
    """State of a home server: one entry per object, ordered by `key_hash`; all arrays int64 of shape (M,)."""

    key_hash: np.ndarray
    version: np.ndarray
    region: np.ndarray
    heard_us: np.ndarray
    now_us: int = 0
    forgotten_us: int = 0

    @classmethod
    def empty(cls) -> "Home":
        """Return the state of a server that has not heard of any object."""
        key_hash, version, region, heard_us = np.empty((4, 0), dtype=np.int64)
        return cls(key_hash, version, region, heard_us)


@dataclass(frozen=True)
class Outbox:
    """What a home server sends to the regions: elements with `tracked_schema`, and a region for each row.

    `arrivals` holds each updated object's newest element, for the region where it lies; `departures` the same elements
    for the regions that the objects left; `passing` accepted elements that a newer one in the same batch supersedes,
    of the streams of which a query wants every element. `stale` counts versions older than the newest known.
    """

    arrivals: tuple[pa.Table, np.ndarray]
    departures: tuple[pa.Table, np.ndarray]
    passing: tuple[pa.Table, np.ndarray]
    stale: int


def step(
    home: Home, elements: pa.Table, partitioner: Partitioner, streams_in_full: frozenset[int], now_us: int
) -> tuple[Home, Outbox]:
    """Take a micro-batch of elements.

    Parameters
    ----------
    home : Home
    elements : pyarrow.Table
        With `tracked_schema`, in the order of arrival.
    partitioner : Partitioner
    streams_in_full : frozenset of int
        Numbers of the streams whose superseded elements are wanted, too.
    now_us : int
        The batch's latest tick; 0 without one.

    Returns
    -------
    home : Home
    outbox : Outbox
    """
    now_us = max(home.now_us, now_us)
    order, accepted, newest = _accept(home, elements)
    rows = order[newest]
    arrivals = elements.take(rows)
    key_hash = arrivals["key_hash"].to_numpy()
    region = partitioner.region_of(bounds_of(arrivals["bounds"]))
    position, known = find(home.key_hash, key_hash)
    before = np.full(len(rows), -1, dtype=np.int64)
    before[known] = home.region[position[known]]
    moved = np.flatnonzero(known & (before != region))
    passing = _passing(elements, order, accepted & ~_mask(newest, len(order)), streams_in_full)
    home = _put(home, arrivals, region, position, known)
    outbox = Outbox(
        (arrivals, region),
        (arrivals.take(moved), before[moved]),
        (passing, partitioner.region_of(bounds_of(passing["bounds"]))),
        int((~accepted).sum()),
    )
    return _forget(home, now_us), outbox


def _accept(home, elements):
    """Order the elements by key and arrival; tell which are not older than those before, and the last of each key."""
    key_hash, version = elements["key_hash"].to_numpy(), elements["version"].to_numpy()
    order = np.argsort(key_hash, kind="stable")
    key_hash, version = key_hash[order], version[order]
    position, known = find(home.key_hash, key_hash)
    accepted = np.ones(len(order), dtype=bool)
    accepted[known] = version[known] >= home.version[position[known]]
    accepted &= version >= _running_maximum(key_hash, np.where(accepted, version, np.iinfo(np.int64).min))
    chosen = np.flatnonzero(accepted)
    return order, accepted, chosen[last_of_runs(key_hash[chosen])]


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
    return elements.take(rows[wanted])


def _put(home, arrivals, region, position, known):
    """Return the state with the arrived objects' new versions, regions and times."""
    new = {
        "key_hash": arrivals["key_hash"].to_numpy(),
        "version": arrivals["version"].to_numpy(),
        "region": region,
        "heard_us": arrivals["heard_us"].to_numpy(),
    }
    columns = {}
    for name, values in new.items():
        column = getattr(home, name).copy()
        column[position[known]] = values[known]
        columns[name] = np.insert(column, position[~known], values[~known])
    return Home(**columns, now_us=home.now_us, forgotten_us=home.forgotten_us)


def _forget(home, now_us):
    """Advance the clock; now and then drop the objects that were silent for long."""
    if now_us - home.forgotten_us < FORGET_EVERY_US:
        return Home(home.key_hash, home.version, home.region, home.heard_us, now_us, home.forgotten_us)
    keep = home.heard_us >= now_us - FORGET_AFTER_US
    columns = (column[keep] for column in (home.key_hash, home.version, home.region, home.heard_us))
    return Home(*columns, now_us=now_us, forgotten_us=now_us)

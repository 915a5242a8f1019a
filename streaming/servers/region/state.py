"""The state of a regional server, its input, and the changes of its objects in a micro-batch."""

import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.runs import distinct, find
from streaming.results import (
    DROPPED,
    EXPIRED,
    HANDOFF,
    MOVED,
)
from streaming.servers.control.border import LeftOut
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import tracked_schema
from streaming.servers.region.dues import Dues
from streaming.servers.region.expiry import Deadlines
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import Cold, Objects, ObjectTable
from streaming.servers.region.predictions import Ways
from streaming.spaces import Space


@dataclass(frozen=True)
class Region:
    """State of a regional server.

    Parameters
    ----------
    objects : ObjectTable
    pairs : MemberTable
        The members of answers. Queries with equal plans share an answer.
    now_us : int
        The latest tick.
    left_out : mapping of int to LeftOut
        The queries, of all kinds, that the region does not evaluate.
    deadlines : Deadlines
        When objects expire; not stored.
    dues : Dues
        When predicted pairs are past their closest points; not stored.
    ways : Ways
        The boxes about the ways of objects that are predicted; not stored.
    """

    objects: ObjectTable
    pairs: MemberTable
    now_us: int = 0
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)
    deadlines: Deadlines = field(default_factory=Deadlines, compare=False)
    dues: Dues = field(default_factory=Dues, compare=False)
    ways: Ways = field(default_factory=Ways, compare=False)

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "Region":
        """Return the state of a server that has not seen any object; the number of the first run is `following`."""
        return cls(ObjectTable.empty(space, following), MemberTable.empty(following))

    @property
    def cold(self) -> Cold:
        """The cold columns of the objects."""
        return self.objects.cold

    def elements(self, objects: Objects, space: Space) -> pa.Table:
        """Return some of the objects, with `elements.tracked_schema`.

        Only the home servers know versions, so `version` has the event time.
        """
        columns = {name: getattr(objects, name) for name in ("key_hash", "stream", "time_us", "heard_us")}
        columns |= {"version": objects.time_us, "bounds": bounds_array(objects.bounds)}
        source, schema = self.cold.take(objects), tracked_schema(space)
        return pa.table([columns[name] if name in columns else source[name] for name in schema.names], schema=schema)


@dataclass(frozen=True)
class ObjectInput:
    """What the home servers send to a region in one micro-batch; see `home.HomeOutput`.

    Tables with `elements.tracked_schema`. Keys are distinct within `arrivals` and within `departures`.
    """

    arrivals: pa.Table
    departures: pa.Table
    passing: pa.Table


@dataclass(frozen=True)
class ObjectChanges:
    """The changes of a region's objects in a micro-batch.

    Parameters
    ----------
    was : Region
        The region as the batch before left it.
    known : ObjectTable
        The objects that were there or arrived, with their newest elements.
    objects : ObjectTable
        The objects that stay in the region.
    moved : Objects
        Those that arrived and stay.
    touched : ndarray of int64, shape (T,)
        Keys of objects that moved, appeared or leave, ascending.
    touched_fate : ndarray of int8, shape (T,)
        Why each of them leaves the region, or MOVED if it stays.
    departures : pyarrow.Table
        The newest elements of objects that went to another region, with `elements.tracked_schema`.
    deadlines : Deadlines
        When `objects` expire.
    """

    was: Region
    known: ObjectTable
    objects: ObjectTable
    moved: Objects
    touched: np.ndarray
    touched_fate: np.ndarray
    departures: pa.Table
    deadlines: Deadlines

    @classmethod
    def of(cls, region: Region, sent: ObjectInput, control: ControlStep) -> "ObjectChanges":
        """Return what the input from the home servers and the control step change in a region."""
        arrivals = sent.arrivals.take(np.argsort(sent.arrivals["key_hash"].to_numpy(), kind="stable"))
        arrived = arrivals["key_hash"].to_numpy()
        known = region.objects.updated(arrivals)
        overdue, deadlines = region.deadlines.overdue(known.table, control.after, control.now_us)
        dropped = _of_streams(known, control.applied.dropped)
        departed = np.sort(sent.departures["key_hash"].to_numpy())
        departed = departed[known.table.find(departed)[0] >= 0]
        touched = distinct(np.r_[arrived, overdue, dropped, departed])
        fate = np.full(len(touched), MOVED, dtype=np.int8)
        for keys, why in ((overdue, EXPIRED), (dropped, DROPPED), (departed, HANDOFF)):
            fate[find(touched, keys)[0]] = why
        leaving = touched[fate != MOVED]
        objects = known.without(leaving)
        moved = Objects.arrived(arrivals, region.objects.following)
        moved = moved.take(~find(leaving, arrived)[1])
        return cls(region, known, objects, moved, touched, fate, sent.departures, deadlines)

    @property
    def cold(self) -> Cold:
        """The cold columns of `known`, and of the objects as the batch before left them."""
        return self.known.cold

    def fates(self, keys: np.ndarray) -> np.ndarray:
        """Return why objects leave the region, or MOVED for those that stay, int8, given their keys (K,)."""
        fate = np.full(len(keys), MOVED, dtype=np.int8)
        position, present = find(self.touched, keys)
        fate[present] = self.touched_fate[position[present]]
        return fate

    @functools.cached_property
    def fate(self) -> np.ndarray:
        """Why each object of all that are `known` leaves the region, or MOVED if it stays (int8, shape (M,))."""
        return self.fates(self.known.key_hash)


def _of_streams(objects: ObjectTable, streams: Collection[int]) -> np.ndarray:
    """Return the keys of the objects of some streams, ascending."""
    if not streams:
        return np.empty(0, dtype=np.int64)
    return objects.select(lambda run: np.isin(run.columns["stream"], list(streams))).key_hash


def fates(known: Objects, departed: np.ndarray, after: Registry, applied: Applied, now_us: int) -> np.ndarray:
    """Return, for each known object, why it leaves the region, or MOVED if it stays (int8, shape (M,))."""
    fate = np.full(len(known), MOVED, dtype=np.int8)
    if after.ttl_us:
        fate[known.heard_us < now_us - after.ttl_of(known.stream)] = EXPIRED
    if applied.dropped:
        fate[np.isin(known.stream, list(applied.dropped))] = DROPPED
    position, present = find(known.key_hash, departed)
    fate[position[present]] = HANDOFF
    return fate

"""The state of a regional server, its input, and the changes of its objects in a micro-batch."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from streaming.servers.region.objects import Cold, Objects
from streaming.spaces import Space


@dataclass(frozen=True)
class Region:
    """State of a regional server.

    Parameters
    ----------
    objects : Objects
    cold : Cold
    pair_key, pair_answer, pair_partner : ndarray of int64, shape (P,)
        The members of answers, ordered by key: the `key_hash` of the object, the number of the answer, and in a join
        the `key_hash` of the partner (otherwise 0). Queries with equal plans share an answer.
    now_us : int
        The latest tick.
    left_out : mapping of int to LeftOut
        The queries, of all kinds, that the region does not evaluate.
    """

    objects: Objects
    cold: Cold
    pair_key: np.ndarray
    pair_answer: np.ndarray
    pair_partner: np.ndarray
    now_us: int = 0
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def empty(cls, space: Space) -> "Region":
        """Return the state of a server that has not seen any object."""
        return cls(Objects.empty(space), Cold(), *np.empty((3, 0), dtype=np.int64))

    def without(self, answers: np.ndarray) -> "Region":
        """Return the state without the members of some answers."""
        if not len(answers):
            return self
        kept = ~np.isin(self.pair_answer, answers)
        return replace(
            self, **{name: getattr(self, name)[kept] for name in ("pair_key", "pair_answer", "pair_partner")}
        )

    def elements(self, rows: np.ndarray, space: Space) -> pa.Table:
        """Return the objects at `rows`, with `elements.tracked_schema`.

        Only the home servers know versions, so `version` has the event time.
        """
        objects = self.objects.take(rows)
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
    known : Objects, M of them
        The objects that were there or arrived, with their newest elements.
    cold : Cold
        The cold columns of `known`.
    fate : ndarray of int8, shape (M,)
        Why each object leaves the region, or MOVED if it stays.
    touched : ndarray of int64
        Keys of objects that moved, appeared or leave, ascending.
    departures : pyarrow.Table
        The newest elements of objects that went to another region, with `elements.tracked_schema`.
    """

    was: Region
    known: Objects
    cold: Cold
    fate: np.ndarray
    touched: np.ndarray
    departures: pa.Table

    @classmethod
    def of(cls, region: Region, sent: ObjectInput, control: ControlStep) -> "ObjectChanges":
        """Return what the input from the home servers and the control step change in a region."""
        arrivals = sent.arrivals.take(np.argsort(sent.arrivals["key_hash"].to_numpy()))
        known, cold = region.objects, region.cold
        if arrivals.num_rows:
            known, cold = known.merged(Objects.arrived(arrivals, cold.following)), cold.append(arrivals)
        departed = sent.departures["key_hash"].to_numpy()
        fate = fates(known, departed, control.after, control.applied, control.now_us)
        touched = distinct(np.r_[arrivals["key_hash"].to_numpy(), known.key_hash[fate != MOVED]])
        return cls(region, known, cold, fate, touched, sent.departures)

    @functools.cached_property
    def objects(self) -> Objects:
        """The objects that stay in the region."""
        stays = self.fate == MOVED
        return self.known if stays.all() else self.known.take(stays)


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

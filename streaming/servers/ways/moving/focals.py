"""Focal objects: where the objects are that queries follow.

Every server receives the element of a focal object once, however many queries follow it.

References
----------
PLACE* (2007), sections 4.3 and 4.4: focal updates are forwarded, also after a focal object has changed its server.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.distributed import PlacedQueries
from streaming.operators.runs import find, last_of_runs
from streaming.results import MOVED
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.elements import tracked_schema
from streaming.servers.region.objects import Objects
from streaming.servers.region.state import Region, fates
from streaming.spaces import Space


@dataclass(frozen=True)
class Focals:
    """The focal objects and search regions of a micro-batch, the same for all regions.

    Parameters
    ----------
    elements : pyarrow.Table
        The newest element of each known focal object, with `elements.tracked_schema`, ordered by `key_hash`.
    searching : ndarray of int64, shape (S,)
        The numbers of queries with a search region, ascending.
    reach : ndarray of float64, shape (S,)
        The radii of these regions, in metres in a geographic space. A radius may be infinite.
    """

    elements: pa.Table
    searching: np.ndarray
    reach: np.ndarray

    @classmethod
    def none(cls, space: Space) -> "Focals":
        """Return no focal objects and no search regions."""
        return cls(tracked_schema(space).empty_table(), np.empty(0, dtype=np.int64), np.empty(0))

    @property
    def keys(self) -> np.ndarray:
        """The `key_hash` of each known focal object, int64, ascending."""
        return self.elements["key_hash"].to_numpy()

    def placed(self, registry: Registry) -> PlacedQueries:
        """Return the distributed queries of a registry, placed where their focal objects are."""
        reach = np.full(len(registry.distributed_ids), np.nan)
        position, present = find(self.searching, registry.distributed_ids)
        reach[present] = self.reach[position[present]]
        return registry.distributed.placed(self.keys, bounds_of(self.elements["bounds"]), reach)

    def followed(self, found: pa.Table, heard: pa.Table, control: ControlStep) -> tuple[pa.Table, dict[int, int]]:
        """Return the focal objects after a micro-batch, and those that were lost in it.

        Parameters
        ----------
        found, heard : pyarrow.Table
            Elements with `elements.tracked_schema`. `found` has the objects that queries begin to follow, as the batch
            before left them; `heard` has the newest elements of focal objects in this batch.
        control : ControlStep

        Returns
        -------
        elements : pyarrow.Table
            As in `Focals`.
        lost : dict of int to int
            By `key_hash`, why a focal object is no longer known: a code of `results.REASONS`.
        """
        table = pa.concat_tables([self.elements, found, heard])
        order = np.argsort(table["key_hash"].to_numpy(), kind="stable")
        table = table.take(order[last_of_runs(table["key_hash"].to_numpy()[order])])
        table = table.filter(pa.array(np.isin(table["key_hash"].to_numpy(), control.after.focal)))
        none = np.empty(0, dtype=np.int64)
        fate = fates(Objects.arrived(table, -1), none, control.after, control.applied, control.now_us)
        lost = fate != MOVED
        keys = table["key_hash"].to_numpy()[lost].tolist()
        return table.filter(pa.array(~lost)), dict(zip(keys, fate[lost].tolist(), strict=True))


def newly_followed(control: ControlStep, regions: Iterable[Region]) -> pa.Table:
    """Return the elements of objects that queries begin to follow; `regions` are as the batch before left them."""
    keys = np.setdiff1d(control.after.focal, control.before.focal)
    tables = [tracked_schema(control.after.space).empty_table()]
    for region in regions if len(keys) else ():
        objects, present = region.objects.found(keys)
        if present.any():
            tables.append(region.elements(objects, control.after.space))
    return pa.concat_tables(tables)


def shifted(before: PlacedQueries, after: PlacedQueries, control: ControlStep) -> np.ndarray:
    """Tell which queries cover another place than in the batch before, or are new: bool of shape (Q,).

    An infinite search region covers everything wherever its focus is, so it does not shift.
    """
    old, new, everywhere = _lasting(before, after, control)
    moved = np.ones(len(control.after.distributed_ids), dtype=bool)
    moved[new] = ~(_same(before.places[old], after.places[new]) | everywhere)
    moved[new] |= ~_same(before.radius[old, None], after.radius[new, None])
    return moved


def carried(before: PlacedQueries, after: PlacedQueries, control: ControlStep) -> np.ndarray:
    """Tell which queries moved with an infinite search region, so that they cover the same: bool of shape (Q,)."""
    old, new, everywhere = _lasting(before, after, control)
    moved = np.zeros(len(control.after.distributed_ids), dtype=bool)
    moved[new] = everywhere & ~_same(before.places[old], after.places[new])
    return moved


def lasting(control: ControlStep) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions, before and after, of the distributed queries whose plan did not change, int64 each."""
    ids = control.after.distributed_ids
    position, known = find(control.before.distributed_ids, ids)
    known &= ~np.isin(ids, control.applied.changed)
    return position[known], np.flatnonzero(known)


def _lasting(
    before: PlacedQueries, after: PlacedQueries, control: ControlStep
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the positions of lasting queries, and which have an infinite search region before and after."""
    old, new = lasting(control)
    everywhere = np.isinf(before.radius[old]) & np.isinf(after.radius[new])
    placed = ~np.isnan(before.places[old]).any(1) & ~np.isnan(after.places[new]).any(1)
    return old, new, everywhere & placed


def _same(was: np.ndarray, now: np.ndarray) -> np.ndarray:
    """Tell which rows (K, m) are equal; NaN equals NaN."""
    return ((was == now) | (np.isnan(was) & np.isnan(now))).all(1)

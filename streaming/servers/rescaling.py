"""The states of servers, as if another region map had always been in force.

When a region map takes force in a micro-batch, the servers begin the batch with these states in place of those that the
batch before left. Then they run it as any other. So nothing is told of an object that another region keeps from now on:
it neither left an answer nor entered one.

References
----------
Synopsis (2017), section 3.3: a node hands a part of its sketch over to another node while the stream goes on.
BBoxDB Streams (2022), section 3.2: distribution regions are split and merged by their load.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streaming.elements import partition_of
from streaming.operators.region_map import RegionMap
from streaming.operators.runs import find
from streaming.servers.control.border import LeftOut
from streaming.servers.control.registry import Registry
from streaming.servers.home import Home
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import Objects, ObjectTable
from streaming.servers.region.state import Region
from streaming.servers.region_bits import EVERYWHERE
from streaming.servers.sorted_runs import SortedRuns


@dataclass(frozen=True)
class Moves:
    """The objects of a region that get another number, part by part of its table.

    Parameters
    ----------
    part, row : ndarray of int64, shape (M,)
        Where the objects are in the table; `part` is ascending.
    key : ndarray of int64, shape (M,)
    to : ndarray of int64, shape (M,)
        The numbers of their new regions.
    """

    part: np.ndarray
    row: np.ndarray
    key: np.ndarray
    to: np.ndarray

    @classmethod
    def none(cls) -> "Moves":
        """Return no objects."""
        return cls(*np.empty((4, 0), dtype=np.int64))

    def into(self, number: int) -> "Moves":
        """Return those that come to a new region."""
        mine = self.to == number
        return self if mine.all() else Moves(self.part[mine], self.row[mine], self.key[mine], self.to[mine])

    @functools.cached_property
    def keys(self) -> np.ndarray:
        """The keys, ascending."""
        return np.sort(self.key, kind="stable")  # quick, since the keys of each part ascend

    def objects(self, region: Region) -> Objects:
        """Return the objects of the old region, ordered by key."""
        order = np.argsort(self.key, kind="stable")
        return region.objects.at(self.part[order], self.row[order])


@dataclass(frozen=True)
class Rescaling:
    """What another region map changes about the states that a batch left.

    Parameters
    ----------
    before : Registry
        As the batch left it. Its region map is the old one.
    region_map : RegionMap
        The new one.
    regions : sequence of Region
        The states of the regional servers, by their old numbers.
    """

    before: Registry
    region_map: RegionMap
    regions: Sequence[Region]

    @functools.cached_property
    def _moves(self) -> list[Moves]:
        """For each old region, those of its objects that get another number."""
        return [self._moves_of(number, region.objects.table) for number, region in enumerate(self.regions)]

    def _moves_of(self, number: int, table: SortedRuns) -> Moves:
        was, now = self.before.region_map, self.region_map
        if number < now.regions and (was.cells[number] == now.cells[number]).all():
            return Moves.none()
        part, row = table.select(lambda run: ~now.keeps(number, run.columns["bounds"]))
        others = [other for other in _overlapping(now.cells, was.cells[number], now.space.n) if other != number]
        if len(others) == 1:
            to = np.full(len(part), others[0])
        else:
            to = now.region_of(table.take(part, row, ("bounds",))["bounds"])
        return Moves(part, row, table.keys(part, row), to)

    @functools.cached_property
    def _moved(self) -> tuple[np.ndarray, np.ndarray]:
        """The keys of all objects that get another number, ascending, and these numbers."""
        key = np.concatenate([moves.key for moves in self._moves])
        to = np.concatenate([moves.to for moves in self._moves])
        order = np.argsort(key, kind="stable")
        return key[order], to[order]

    def home(self, state: Home, partition: int, partitions: int) -> Home:
        """Return the state of the home server of a partition, of so many."""
        key, to = self._moved
        mine = partition_of(key, partitions) == partition
        key, to = key[mine], to[mine]
        part, row = state.entries.find(key)
        known = part >= 0
        columns = state.entries.take(part[known], row[known])
        columns["region"] = to[known].astype(columns["region"].dtype)
        entries = state.entries.put(key[known], columns, key[:0])
        if self.before.reach:  # regions fetch the elements that they must know, and this server does not know which
            entries = entries.with_column("copies", EVERYWHERE)
        return replace(state, entries=entries)

    def region(self, number: int, empty: Region) -> Region:
        """Return the state of a regional server; one with a new number begins with the `empty` one."""
        own = self.regions[number] if number < len(self.regions) else empty
        sources, arriving = self._sources(number), list(self.arriving(number))
        left_out: set[int] = set.intersection(*(set(self.regions[source].left_out) for source in sources))
        objects, pairs = own.objects, own.pairs
        if number < len(self.regions):
            leaving = self.leaving(number)
            objects, pairs = objects.without(leaving), pairs.without_objects(leaving)
        if len(arriving) == 1:
            objects, pairs = self._joined(objects, pairs, *arriving[0])
        elif arriving:
            objects = objects.updated(self._elements(arriving))
            pairs = pairs.joined([self.regions[other].pairs.of_objects(moves.keys) for other, moves in arriving])
        return Region(
            objects.settled(),
            pairs.settled(),
            max(region.now_us for region in self.regions),
            {query: out for query, out in self._all_left_out(sources).items() if query in left_out},
        )

    def _joined(
        self, objects: ObjectTable, pairs: MemberTable, other: int, moves: Moves
    ) -> tuple[ObjectTable, MemberTable]:
        """Return objects and members with those that come from an old region.

        They stay in the order in which they are, so nothing is merged or sorted.
        """
        old = self.regions[other]
        some = old.objects.table.some(moves.part, moves.row, objects.following)
        members = old.pairs.table.select(lambda run: find(moves.keys, run.key)[1])
        told = old.pairs.table.some(*members, pairs.table.following)
        return ObjectTable(objects.table.joined(some)), MemberTable(pairs.table.joined(told))

    def _elements(self, arriving: Sequence[tuple[int, Moves]]) -> pa.Table:
        """Return the objects that come from old regions, with `elements.tracked_schema`, ordered by key."""
        several = [
            self.regions[other].elements(moves.objects(self.regions[other]), self.before.space)
            for other, moves in arriving
        ]
        if len(several) == 1:
            return several[0]
        elements = pa.concat_tables(several)
        return elements.take(np.argsort(elements["key_hash"].to_numpy(), kind="stable"))

    def left_out_elsewhere(self, number: int) -> list[int]:
        """Return the queries that some of the servers before left out, but not all, so that an answer lacks a part."""
        sources = self._sources(number)
        one, *others = (set(self.regions[source].left_out) for source in sources)
        return sorted(one.union(*others) - one.intersection(*others))

    def _all_left_out(self, sources: Iterable[int]) -> dict[int, LeftOut]:
        return {query: out for source in sources for query, out in self.regions[source].left_out.items()}

    def _sources(self, number: int) -> list[int]:
        """Return the old regions whose cells overlap that of a new one."""
        return _overlapping(self.before.region_map.cells, self.region_map.cells[number], self.before.space.n)

    def leaving(self, number: int) -> np.ndarray:
        """Return the keys of the objects that go from an old region to another one, int64, ascending."""
        return self._moves[number].keys

    def arriving(self, number: int) -> Iterator[tuple[int, Moves]]:
        """Yield the old regions from which objects come to a new one, and these objects."""
        for other, moves in enumerate(self._moves):
            mine = moves.into(number)
            if other != number and len(mine.key):
                yield other, mine


def _overlapping(cells: np.ndarray, cell: np.ndarray, n: int) -> list[int]:
    """Return the numbers of the cells that overlap a cell of n dimensions."""
    return np.flatnonzero(((cells[:, :n] < cell[n:]) & (cells[:, n:] > cell[:n])).all(axis=1)).tolist()

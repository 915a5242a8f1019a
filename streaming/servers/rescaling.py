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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.aggregates import parts
from streaming.operators.region_map import RegionMap
from streaming.operators.runs import distinct, find
from streaming.servers.answers.members import Answers
from streaming.servers.assembler.aggregation import REGIONAL
from streaming.servers.assembler.server import AssemblerState
from streaming.servers.control.registry import Registry
from streaming.servers.elements import tracked_schema
from streaming.servers.home import Home
from streaming.servers.ordering import everywhere
from streaming.servers.region.state import Region
from streaming.servers.region.stream_join import RegionPlace
from streaming.servers.region_bits import EVERYWHERE


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
    def _moves(self):
        """For each old region, those of its objects that get another number, and these numbers."""
        was, now = self.before.region_map, self.region_map
        moves = []
        for number, region in enumerate(self.regions):
            if number < now.regions and (was.cells[number] == now.cells[number]).all():
                moves.append((region.objects.at(*np.empty((2, 0), dtype=np.int64)), np.empty(0, dtype=np.int64)))
                continue
            objects = region.objects.whole
            to = now.region_of(objects.bounds)
            moved = np.flatnonzero(to != number)
            moves.append((objects.take(moved), to[moved]))
        return moves

    @functools.cached_property
    def _moved(self):
        """The keys of all objects that get another number, ascending, and these numbers."""
        key = np.concatenate([objects.key_hash for objects, _ in self._moves])
        to = np.concatenate([to for _, to in self._moves])
        order = np.argsort(key, kind="stable")
        return key[order], to[order]

    def home(self, state: Home) -> Home:
        """Return the state of a home server."""
        key, to = self._moved
        part, row = state.entries.find(key)
        known = part >= 0
        columns = state.entries.take(part[known], row[known])
        columns["region"] = to[known].astype(columns["region"].dtype)
        entries = state.entries.put(key[known], columns, key[:0])
        if self.before.reach:  # regions fetch the elements that they must know, and this server does not know which
            entries = entries.with_column("copies", EVERYWHERE)
        return replace(state, entries=entries, orderings=everywhere(state.orderings))

    def region(self, number: int, empty: Region) -> Region:
        """Return the state of a regional server; one with a new number begins with the `empty` one."""
        own = self.regions[number] if number < len(self.regions) else empty
        sources = self._sources(number)
        elements, members = (
            [tracked_schema(self.before.space).empty_table()],
            [own.pairs.of_objects(np.empty(0, np.int64))],
        )
        for other, objects in self._arriving(number):
            elements.append(self.regions[other].elements(objects, self.before.space))
            members.append(self.regions[other].pairs.of_objects(objects.key_hash))
        leaving = self._moves[number][0].key_hash if number < len(self.regions) else np.empty(0, dtype=np.int64)
        arrived = pa.concat_tables(elements)
        arrived = arrived.take(np.argsort(arrived["key_hash"].to_numpy(), kind="stable"))
        objects = own.objects.without(leaving)
        if arrived.num_rows:
            objects = objects.updated(arrived)
        left_out = [set(self.regions[source].left_out) for source in sources]
        return Region(
            objects.settled(),
            _with_members(own.pairs, leaving, members).settled(),
            max(region.now_us for region in self.regions),
            {query: out for query, out in self._all_left_out(sources).items() if query in set.intersection(*left_out)},
        )

    def left_out_elsewhere(self, number: int) -> list[int]:
        """Return the queries that some of the servers before left out, but not all, so that an answer lacks a part."""
        sources = self._sources(number)
        left_out = [set(self.regions[source].left_out) for source in sources]
        return sorted(set.union(*left_out) - set.intersection(*left_out))

    def _all_left_out(self, sources):
        return {query: out for source in sources for query, out in self.regions[source].left_out.items()}

    def _sources(self, number):
        """Return the old regions whose cells overlap that of a new one."""
        n, cell, cells = self.before.space.n, self.region_map.cells[number], self.before.region_map.cells
        overlaps = ((cells[:, :n] < cell[n:]) & (cells[:, n:] > cell[:n])).all(axis=1)
        return np.flatnonzero(overlaps).tolist()

    def _arriving(self, number):
        """Yield the old regions from which objects come to a new one, and these objects, ordered by key."""
        for other, (objects, to) in enumerate(self._moves):
            mine = to == number
            if other != number and mine.any():
                yield other, objects.take(mine)

    def joined(self, number: int, empty: Region, joins: Callable[[int], Region]) -> Region:
        """Return the state of a regional server's joins with streams.

        Parameters
        ----------
        number : int
        empty : Region
            With which a server with a new number begins.
        joins : callable
            Returns the state of an old region's joins with streams.
        """
        if not self.before.reach:
            return empty
        own = joins(number) if number < len(self.regions) else empty
        known = RegionPlace(number, self.region_map).found(self.regions, self.before.reach)
        known = known.take(np.argsort(known["key_hash"].to_numpy(), kind="stable"))
        objects = own.objects.without(own.objects.whole.key_hash)
        if known.num_rows:
            objects = objects.updated(known)
        told = [joins(other).pairs.whole() for other in range(len(self.regions))]
        mine = self._told_by(number, _concatenated(told), objects.whole)
        pairs = _with_members(own.pairs, distinct(own.pairs.whole().key), [mine])
        return replace(own, objects=objects.settled(), pairs=pairs.settled())

    def _told_by(self, number, pairs, objects):
        """Return those of all pairs that a region tells from now on."""
        (row, known), (partner, met) = find(objects.key_hash, pairs.key), find(objects.key_hash, pairs.partner)
        both = known & met  # a region that tells a pair knows both of its elements
        pairs, row, partner = pairs.take(both), row[both], partner[both]
        joins, ids = self.before.stream_joins, self.before.stream_ids
        meetings = joins.meetings(row, np.searchsorted(ids, pairs.query), partner, objects.bounds)
        return pairs.take(meetings.tellers(objects.bounds, self.region_map) == number)

    def members(self, number: int, members: Callable[[int], pl.DataFrame]) -> pl.DataFrame:
        """Return the members of aggregates in a region, given a function that returns those in an old region."""
        frames = []
        if number < len(self.regions):
            leaving = self._moves[number][0].key_hash
            frames.append(_of_keys(members(number), leaving, inside=False))
        for other, objects in self._arriving(number):
            frames.append(_of_keys(members(other), objects.key_hash, inside=True))
        return pl.concat(frames) if frames else members(0).clear()

    def assembly(self, state: AssemblerState, members: Callable[[int], pl.DataFrame]) -> AssemblerState:
        """Return the state of the assembler: the part that each region contributes to an aggregate."""
        held = state.aggregation.parts["query"].unique().to_list()
        found = []
        for number in range(self.region_map.regions):
            own = self.members(number, members).filter(pl.col("query").is_in(held))
            found.append(parts(own).with_columns(region=pl.lit(number, pl.Int64)).select(list(REGIONAL)))
        return replace(state, aggregation=replace(state.aggregation, parts=pl.concat(found)))


def _with_members(pairs, leaving, arriving):
    """Return the members of answers without those with some objects, and with others."""
    old = pairs.of_objects(leaving)
    pairs = pairs.replaced(old, old.take(np.empty(0, dtype=np.int64)), distinct(old.key))
    new = _concatenated(arriving)
    return pairs.replaced(new.take(np.empty(0, dtype=np.int64)), new, distinct(new.key))


def _concatenated(several):
    """Return several members of answers as one, ordered by key."""
    names = ("key", "query", "partner")
    both = Answers(*(np.concatenate([getattr(part, name) for part in several]) for name in names))
    return both.take(np.argsort(both.key, kind="stable"))


def _of_keys(members, keys, inside):
    chosen = find(keys, members["key"].to_numpy())[1]
    return members.filter(pl.Series(chosen if inside else ~chosen))

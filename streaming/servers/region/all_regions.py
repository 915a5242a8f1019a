"""The objects of all regions, as the assembler reads them."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.operators.geodesics import local_metres
from streaming.operators.stream_boxes import Look
from streaming.results import result_schema
from streaming.servers.answers.members import Answers
from streaming.servers.answers.tuples import result_rows
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import Objects, ObjectTable
from streaming.servers.region.state import Region
from streaming.spaces import Space


@dataclass(frozen=True)
class AllRegions:
    """The objects of all regions, before and after a micro-batch.

    Parameters
    ----------
    before : callable
        Returns the regions as the batch before left them.
    after : sequence of Region
        The regions as this batch leaves them.
    space : Space
    indexed : callable
        Given the number of a region and its objects, returns the index over these.
    """

    before: Callable[[], Iterable[Region]]
    after: Sequence[Region]
    space: Space
    indexed: Callable[[int, ObjectTable], ObjectIndex]

    @property
    def looks(self) -> Iterator[Look]:
        """The index over the objects of each region, as this batch leaves it."""
        for number, region in enumerate(self.after):
            if len(region.objects):
                yield self.indexed(number, region.objects).look

    def rows(self, answers: Answers, rank: np.ndarray) -> pa.Table:
        """Return members of answers as result tuples, each with its object's newest element, in any order.

        `rank` (P,) is 0 where there is none. An object that left all regions appears as the batch before left it.
        """
        tables = [result_schema(self.space).empty_table()]
        for region, at, objects in self._found(answers.key):
            nothing = {name: pa.nulls(len(at), pa.string()) for name in ("partner", "partner_properties")}
            table = result_rows(answers.take(at), objects, region.cold.take(objects), nothing, self.space)
            ranks = pa.array(rank[at].astype(np.int32), mask=rank[at] == 0)
            tables.append(table.set_column(table.schema.get_field_index("rank"), "rank", ranks))
        return pa.concat_tables(tables)

    def _found(self, keys: np.ndarray) -> Iterator[tuple[Region, np.ndarray, Objects]]:
        """Yield regions, the positions of the keys that each has, and their objects; each key once."""
        left = np.arange(len(keys))
        for regions in (lambda: self.after, self.before):
            if not len(left):
                return
            for region in regions():
                objects, present = region.objects.found(keys[left])
                if present.any():
                    yield region, left[present], objects
                left = left[~present]

    def column(self, keys: np.ndarray, name: str) -> np.ndarray:
        """Return a hot column of objects, given their `key_hash` (K,); 0 where an object is unknown."""
        like = self.after[0].objects.table.like[name]
        values = np.zeros((len(keys), *like.shape[1:]), dtype=like.dtype)
        for _, at, objects in self._found(keys):
            values[at] = getattr(objects, name)
        return values

    def were(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the boxes (K, 2n) of objects (K,) as the batch before left them, and which objects were known."""
        bounds, known = np.zeros((len(keys), 2 * self.space.n)), np.zeros(len(keys), dtype=bool)
        for region in self.before() if len(keys) else ():
            objects, present = region.objects.found(keys)
            bounds[present], known[present] = objects.bounds, True
        return bounds, known

    def names(self, keys: np.ndarray) -> list[str | None]:
        """Return the keys, as text, of objects, given their `key_hash` (K,); None where an object is unknown."""
        names: list[str | None] = [None] * len(keys)
        for region, at, objects in self._found(keys):
            found = region.cold.take(objects)["key"].to_pylist()
            for place, value in zip(at.tolist(), found, strict=True):
                names[place] = value
        return names

    def gone(self, keys: np.ndarray) -> np.ndarray:
        """Tell which objects (K,) are in no region any more."""
        gone = np.ones(len(keys), dtype=bool)
        for region in self.after:
            gone &= ~region.objects.found(keys)[1]
        return gone

    @functools.cached_property
    def density(self) -> float:
        """Objects per square metre, or square unit, of the box that holds them all; 0 without objects.

        The box may also hold places where objects were, of which the tables of the regions still have rows.
        """
        tables = [region.objects.table for region in self.after if len(region.objects)]
        boxes = [run.columns["bounds"] for table in tables for run in table.parts if len(run.key)]
        count, n = sum(map(len, tables)), self.space.n
        if not count:
            return 0.0
        low = np.min([box[:, :n].min(axis=0) for box in boxes], axis=0)
        high = np.max([box[:, n:].max(axis=0) for box in boxes], axis=0)
        extent = (high - low)[:2]
        extent = np.where(np.isfinite(extent) & (extent > 0), extent, 1e-9)
        if self.space.geographic:
            extent = extent * np.array(local_metres((high[1] + low[1]) / 2))
        return count / float(np.prod(extent))

"""Result tuples of members of answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.operators.failures import UnusedReports
from streaming.operators.runs import find
from streaming.results import (
    SNAPSHOT,
    result_schema,
)
from streaming.servers.answers.members import Answers
from streaming.servers.control.registry import Registry
from streaming.servers.region.objects import Cold, Objects, ObjectTable
from streaming.spaces import Space


@dataclass(frozen=True)
class Results:
    """The results of one region and micro-batch: tables of result tuples with `results.result_schema`.

    `failures` tells, by query, what failed. `seconds` tells what each query cost; queries that share an answer each
    have its whole cost. `shared`, `aggregates` and `clocks` are as in `results.Fragment`. `unused` tells which reports
    queries did not use.
    """

    changes: pa.Table
    snapshots: pa.Table
    counters: dict = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    shared: dict[int, tuple[int, ...]] = field(default_factory=dict)
    aggregates: tuple[int, ...] = ()
    seconds: dict[int, float] = field(default_factory=dict)
    clocks: tuple[dict, ...] = ()
    unused: UnusedReports = field(default_factory=dict)

    @classmethod
    def nothing(cls, space: Space, seconds: dict[int, float] | None = None) -> "Results":
        """Return no results, and what it cost to find out."""
        none = result_schema(space).empty_table()
        return cls(none, none, seconds=seconds or {})

    def plus(self, more: "Results") -> "Results":
        """Return these results and more of the same region and micro-batch; the counters are added."""
        names = {**self.counters, **more.counters}
        return Results(
            pa.concat_tables([self.changes, more.changes]),
            pa.concat_tables([self.snapshots, more.snapshots]),
            {name: self.counters.get(name, 0) + more.counters.get(name, 0) for name in names},
            {**more.failures, **self.failures},
            {**self.shared, **more.shared},
            tuple(dict.fromkeys((*self.aggregates, *more.aggregates))),
            seconds={**self.seconds, **more.seconds},
            clocks=self.clocks + more.clocks,
            unused={**self.unused, **more.unused},
        )


@dataclass(frozen=True)
class TupleWriter:
    """Writes result tuples from what a region knows of objects and of the partners in joins."""

    known: Objects | ObjectTable
    cold: Cold
    departures: pa.Table
    before: Registry
    after: Registry

    def rows(self, answers: Answers) -> pa.Table:
        """Return members of answers as result tuples; an object that departed appears with its newest element."""
        if not len(answers.key):
            return result_schema(self.after.space).empty_table()
        departed_key = self.departures["key_hash"].to_numpy()
        order = np.argsort(departed_key)
        place, gone = find(departed_key[order], answers.key)
        away, here = np.flatnonzero(gone), np.flatnonzero(~gone)
        tables = []
        if len(here):
            tables.append(self.present(answers.take(here), self.known, self.cold))
        if len(away):
            source = self.departures.take(order[place[away]])
            tables.append(self.table(answers.take(away), Objects.arrived(source, -1), source))
        return pa.concat_tables(tables)

    def present(self, answers: Answers, objects: Objects | ObjectTable, cold: Cold) -> pa.Table:
        """Return members of answers, all of them among `objects`, as result tuples."""
        found = objects.found(answers.key)[0]
        return self.table(answers, found, cold.take(found))

    def snapshot(self, members: Answers, objects: Objects | ObjectTable, cold: Cold) -> pa.Table:
        """Return members of answers, all of them among `objects`, as rows of snapshots."""
        if not len(members.key):
            return result_schema(self.after.space).empty_table()
        return self.present(replace(members, reason=SNAPSHOT), objects, cold)

    def table(self, answers: Answers, objects: Objects, source: pa.Table) -> pa.Table:
        """Return result tuples; `objects` and `source`, their cold columns, have a row for each member."""
        return result_rows(answers, objects, source, self._partners(answers), self.after.space)

    def _layers(self) -> Iterator[tuple[Registry, str]]:
        """Yield the layers in which partners may be: those that are joined now, then those that were before.

        The hash of a feature depends on its key and its layer, so it occurs in one layer only.
        """
        for registry in (self.after, self.before):
            for layer in sorted(registry.layers_joined):
                yield registry, layer

    def _partners(self, answers: Answers) -> dict[str, pa.Array]:
        """Return the keys and the properties of partners, null where a member has no partner."""
        rows = len(answers.key)
        left = np.flatnonzero(answers.partner != 0)
        found = [np.empty(0, np.int64)]
        taken: dict[str, list[pa.ChunkedArray]] = {"partner": [], "partner_properties": []}
        for layer in (registry.features(name) for registry, name in self._layers()):
            if not len(left):
                break
            still = np.ones(len(left), dtype=bool)
            for position, features, row in layer.located(answers.partner[left]):
                found.append(left[position])
                still[position] = False
                # Never take whole features: one may be a continent, and occur in thousands of rows.
                wanted = features.table.select(["key", "properties"]).take(pa.array(row))
                taken["partner"].append(wanted["key"])
                taken["partner_properties"].append(wanted["properties"])
            left = left[still]
        if not taken["partner"]:
            return {name: pa.nulls(rows, pa.string()) for name in taken}
        index = np.full(rows, -1)
        order = np.concatenate(found)
        index[order] = np.arange(len(order))
        place = pa.array(index, mask=index < 0)
        return {
            name: pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string()).take(place)
            for name, parts in taken.items()
        }


def result_rows(answers: Answers, objects: Objects, source: pa.Table, partners: Mapping, space: Space) -> pa.Table:
    """Return members of answers as result tuples.

    Parameters
    ----------
    answers : Answers, P members
    objects : Objects
        The object of each member.
    source : pyarrow.Table
        The cold columns of the same objects.
    partners : mapping of str to pyarrow array
        The columns `partner` and `partner_properties`.
    space : Space
    """
    rows = len(answers.key)
    columns = {
        "query": answers.query,
        "sign": np.broadcast_to(np.int8(answers.sign), rows),
        "reason": np.broadcast_to(np.int8(answers.reason), rows),
        "key": source["key"],
        "key_hash": objects.key_hash,
        "time_us": objects.time_us,
        "bounds": bounds_array(objects.bounds),
        "properties": source["properties"],
        "partner_hash": answers.partner,
        "distance": pa.array(np.broadcast_to(answers.distance, rows), from_pandas=True),
    } | dict(partners)
    schema = result_schema(space)
    return pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in schema], schema=schema)

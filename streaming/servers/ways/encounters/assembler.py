"""Encounters in the assembler: it joins the spans of time in which regions found pairs near.

A pair whose spans follow each other without a break has one encounter, whichever regions found them. The assembler
keeps the encounters that go on, and those of which it has not told everything: a pair has at most one change in a batch
that subscribers must see after another one, so what else there is waits for the next batch.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.operators.encounters import OPEN_US
from streaming.operators.failures import Failures
from streaming.operators.runs import distinct, find, first_of_runs, place_in_runs
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    ENTERED,
    FAILED,
    LEFT,
    MOVED,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import LeftOut, left_out_of_rows, left_out_rows
from streaming.servers.control.step import ControlStep
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.servers.sorted_runs import Column, Run, SortedRuns
from streaming.servers.ways.encounters.event_times import EventTimeAdvance, EventTimes, is_dropped, renewed
from streaming.servers.ways.encounters.joined_spans import JoinedSpans, joined_spans, with_column
from streaming.servers.ways.encounters.mirrored import MirroredEncounters
from streaming.servers.ways.encounters.spans import Ends, Spans, columns_of, pair_hashes, span_schema
from streaming.servers.ways.encounters.spans import table_of as span_table
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head

_PAIR = ("query", "key_hash", "partner_hash")


@functools.lru_cache(maxsize=64)
def encounter_schema(space: Space) -> pa.Schema:
    """Return the columns of encounters: those of spans, and `told` (int8), which is 1 once its beginning was told.

    `since_us` is the beginning. The reports are those of which the distance is the least.
    """
    return span_schema(space).append(pa.field("told", pa.int8()))


@dataclass(frozen=True)
class EncounterAnswers:
    """State of the assembler: the encounters of all queries.

    Parameters
    ----------
    pairs : SortedRuns
        With `encounter_schema`, by `spans.pair_hashes`; the rows of a pair in the order of event time.
    left_out : mapping of int to LeftOut
        The queries that the assembler leaves out.
    """

    pairs: SortedRuns
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def none(cls, space: Space, following: int = 0) -> "EncounterAnswers":
        """Return no encounters; the number of the first run is `following`."""
        return cls(SortedRuns(_no_columns(space), following=following))


def _no_columns(space: Space) -> dict[str, Column]:
    return columns_of(encounter_schema(space).empty_table())


def step(
    was: EncounterAnswers, spans: Sequence[Spans], control: ControlStep, times: EventTimes
) -> tuple[EncounterAnswers, Results]:
    """Join the spans that all regions told in a micro-batch.

    Parameters
    ----------
    was : EncounterAnswers
    spans : sequence of Spans
        Of all regions.
    control : ControlStep
    times : EventTimes

    Returns
    -------
    answers : EncounterAnswers
    results : Results
    """
    began, space, failures = perf_counter(), control.after.space, Failures()
    advances = times.advances(control)
    lost = [query for query in times.clocks if query not in advances or advances[query].is_new]
    pairs, gone = _without(was.pairs, lost)
    begun = pa.concat_tables([span_schema(space).empty_table(), *(part.begun for part in spans)])
    ids = np.array(sorted(advances), dtype=np.int64)
    begun = begun.filter(pa.array(find(ids, begun["query"].to_numpy())[1]))
    ended = Ends.together([part.ended for part in spans])
    joining = _Joining(pairs, begun, ended, control, advances)
    pairs, rows = joining.joined()
    table = pa.concat_tables([_ended_by_control(gone, control), rows])
    snapshots = _snapshots(pairs, control)
    failures.share(table["query"].to_numpy(), perf_counter() - began, ids)
    results = Results(table, snapshots, {"results": table.num_rows}, failures.errors, seconds=failures.seconds)
    return EncounterAnswers(pairs.settled(), was.left_out), results


def lacking(spans: Sequence[Spans], control: ControlStep) -> list[int]:
    """Return the queries whose answers cannot be assembled because a region left out its part."""
    left_out = (query for part in spans for query in part.lacking.tolist())
    return [query for query in left_out if query in control.after.encounters]


def sent(spans: Sequence[Spans]) -> dict[int, tuple[int, ...]]:
    """Return how many beginnings and ends of spans each region told for each query; see `results.Fragment`."""
    counts: dict[int, list[int]] = {}
    for region, part in enumerate(spans):
        query = np.r_[part.begun["query"].to_numpy(), part.ended.query]
        for number, count in zip(*(column.tolist() for column in np.unique(query, return_counts=True)), strict=True):
            counts.setdefault(number, [0] * len(spans))[region] = count
    return {query: tuple(row) for query, row in counts.items()}


def _without(pairs: SortedRuns, queries: Sequence[int]) -> tuple[SortedRuns, dict[str, Any]]:
    """Return the encounters without those of some queries, and these."""
    if not queries:
        return pairs, _rows_of(pairs, *np.empty((2, 0), dtype=np.int64))
    part, row = pairs.select(lambda run: np.isin(run.columns["query"], queries))
    gone, keys = _rows_of(pairs, part, row), distinct(pairs.keys(part, row))
    return (pairs.without(keys, newest=False) if len(keys) else pairs), gone


def _rows_of(pairs: SortedRuns, part: np.ndarray, row: np.ndarray) -> dict[str, Any]:
    return pairs.take(part, row)


def _ended_by_control(gone: dict[str, Any], control: ControlStep) -> pa.Table:
    """Return the ends of encounters whose queries have ended, failed or were edited."""
    applied, space = control.applied, control.after.space
    query = gone["query"]
    told = np.flatnonzero((gone["told"] == 1) & ~np.isin(query, applied.forgotten))
    table = span_table(gone, encounter_schema(space)).take(pa.array(told))
    query, until_us = query[told], gone["until_us"][told]
    reason = np.full(len(told), EDITED, dtype=np.int8)
    reason[np.isin(query, applied.cancelled)] = CANCELLED
    reason[np.isin(query, applied.failed)] = FAILED
    return _result_rows(table, LEFT, reason, until_us, space)


def _snapshots(pairs: SortedRuns, control: ControlStep) -> pa.Table:
    """Return the requested snapshots: the encounters whose beginnings were told, and not yet their ends."""
    asked = [query for query in control.applied.snapshots if query in control.after.encounters]
    space = control.after.space
    if not asked:
        return result_schema(space).empty_table()
    part, row = pairs.select(lambda run: np.isin(run.columns["query"], asked) & (run.columns["told"] == 1))
    table = span_table(_rows_of(pairs, part, row), encounter_schema(space))
    return _result_rows(table, ENTERED, SNAPSHOT, np.full(len(part), OPEN_US), space)


def _result_rows(table: pa.Table, sign: int, reason: np.ndarray | int, until_us: np.ndarray, space: Space) -> pa.Table:
    """Return encounters as result tuples; `until_us` is `OPEN_US` where no end is told."""
    rows = table.num_rows
    columns = {name: table[name] for name in table.schema.names}
    columns |= {
        "sign": np.full(rows, sign, dtype=np.int8),
        "reason": np.broadcast_to(np.int8(reason), rows),
        "distance": pa.array(table["distance"].to_numpy(), from_pandas=True),
        "until_us": pa.array(until_us, mask=until_us == OPEN_US),
    }
    schema = result_schema(space)
    return pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in schema], schema=schema)


@dataclass(frozen=True)
class _Joining:
    """The joining of spans to encounters in a micro-batch."""

    pairs: SortedRuns
    begun: pa.Table
    ended: Ends
    control: ControlStep
    advances: Mapping[int, EventTimeAdvance]

    @property
    def space(self) -> Space:
        return self.control.after.space

    @functools.cached_property
    def ids(self) -> np.ndarray:
        return np.array(sorted(self.advances), dtype=np.int64)

    def _of_queries(self, values: Callable[[int], int]) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function that looks up values, given by query, for queries (P,). It makes no cycle with `self`."""
        ids = self.ids
        column = np.array([values(query) for query in ids.tolist()], dtype=np.int64)
        return lambda query: column[find(ids, query)[0]]

    @functools.cached_property
    def _until_us(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._of_queries(lambda query: self.advances[query].until_us)

    @functools.cached_property
    def _from_us(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._of_queries(lambda query: self.advances[query].from_us)

    @functools.cached_property
    def _for_us(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._of_queries(lambda query: self.control.after.encounters[query].for_us)

    @functools.cached_property
    def _broken(self) -> Callable[[np.ndarray], np.ndarray]:
        """Of the queries whose former spans all end at the watermark: why, if no span follows; 0 for the others."""
        encounters, control = self.control.after.encounters, self.control

        def reason(query: int) -> int:
            if is_dropped(encounters[query], control):
                return DROPPED
            edited = encounters[query].layer in control.applied.edited
            return (EDITED if edited else MOVED) if renewed(encounters[query], control) else -1

        return self._of_queries(reason)

    @functools.cached_property
    def _chooses(self) -> Callable[[np.ndarray], np.ndarray]:
        """Tell which queries choose between encounters that mirror each other: 1, or 0."""
        encounters = self.control.after.encounters

        def chooses(query: int) -> int:
            return int(encounters[query].tells_one_of_two and not encounters[query].is_even)

        return self._of_queries(chooses)

    def joined(self) -> tuple[SortedRuns, pa.Table]:
        """Return the encounters after the batch, and their changes as result tuples."""
        keys = self._touched()
        if not len(keys):
            return self.pairs, result_schema(self.space).empty_table()
        known = self.pairs.rows(keys)
        groups = joined_spans(*self._segments(known))
        told = self._told(groups)
        table, kept = groups.table, told.stays
        names = [table[name].to_numpy() for name in _PAIR]
        table = with_column(table, "told", (groups.told | told.begins).astype(np.int8)).filter(pa.array(kept))
        hashes = pair_hashes(*names)[kept]
        order = np.argsort(hashes, kind="stable")
        table, hashes = table.take(pa.array(order)), hashes[order]
        had = len(distinct(self.pairs.keys(*known)))
        removed = keys[~find(hashes, keys)[1]]
        removed = removed[self.pairs.find(removed)[0] >= 0]
        difference = len(distinct(hashes)) - had
        pairs = self.pairs.put(hashes, columns_of(table), removed, difference)
        return pairs, told.rows(groups, self.space)

    def _touched(self) -> np.ndarray:
        """Return the pairs of which something may have to be told, ascending."""
        due = self.pairs.take(*self.pairs.select(self._due), _PAIR)
        columns = [np.r_[self.begun[name].to_numpy(), getattr(self.ended, name), due[name]] for name in _PAIR]
        known = np.flatnonzero(find(self.ids, columns[0])[1])
        chooses = known[self._chooses(columns[0][known]) == 1]
        query, one, other = (column[chooses] for column in columns)
        return distinct(np.r_[pair_hashes(*columns), pair_hashes(query, other, one)])

    def _due(self, run: Run) -> np.ndarray:
        """Tell of which encounters something may have to be told although no span begins or ends."""
        columns = run.columns
        query = columns["query"]
        known = find(self.ids, query)[1]
        due = (columns["until_us"] != OPEN_US) & known
        place = np.flatnonzero(known)
        long = columns["since_us"][place] + self._for_us(query[place]) <= self._until_us(query[place])
        due[place] |= (self._broken(query[place]) >= 0) | (long & (columns["told"][place] == 0))
        return due

    def _segments(self, known: tuple[np.ndarray, np.ndarray]) -> tuple[pa.Table, np.ndarray]:
        """Return the encounters that were known and the spans that have begun, by pair, in the order of event time."""
        schema = encounter_schema(self.space)
        before = span_table(self.pairs.take(*known), schema)
        query, until_us, reason = (before[name].to_numpy().copy() for name in ("query", "until_us", "reason"))
        broken = self._broken(query)
        here = (broken >= 0) & (until_us == OPEN_US)
        until_us[here], reason[here] = self._from_us(query)[here], broken[here]
        before = with_column(with_column(before, "until_us", until_us), "reason", reason.astype(np.int8))
        told = pa.array(np.zeros(self.begun.num_rows, dtype=np.int8))
        table = pa.concat_tables([before, self.begun.append_column("told", told).cast(schema)])
        pair, ended = self._numbered(table)
        order = np.lexsort((table["since_us"].to_numpy(), pair))
        return self._with_ends(table.take(pa.array(order)), pair[order], ended)

    def _numbered(self, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Return a number of the pair of each segment, and of each end; equal pairs have equal numbers."""
        columns = [np.r_[table[name].to_numpy(), getattr(self.ended, name)] for name in _PAIR]
        number = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].reshape(-1)
        return number[: table.num_rows], number[table.num_rows :]

    def _with_ends(self, table: pa.Table, pair: np.ndarray, ended: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Give spans that were told as going on their ends: of a pair, the first open span has the first end."""
        until_us, reason = (table[name].to_numpy().copy() for name in ("until_us", "reason"))
        going = np.flatnonzero(until_us == OPEN_US)
        order = np.lexsort((self.ended.until_us, ended))
        place = _ranked(ended[order])
        at, present = _matched(_ranked(pair[going]), place)
        until_us[going[present]] = self.ended.until_us[order][at[present]]
        reason[going[present]] = self.ended.reason[order][at[present]]
        return with_column(with_column(table, "until_us", until_us), "reason", reason), pair

    def _told(self, groups: JoinedSpans) -> "_ToldEncounters":
        """Return what is told of encounters now, and which of them stay."""
        query, since_us, until_us = (groups.table[name].to_numpy() for name in ("query", "since_us", "until_us"))
        watermark_us = self._until_us(query)
        over = until_us < watermark_us
        lasts = np.minimum(until_us, watermark_us) - since_us >= self._for_us(query)
        may, never = self._chosen(groups, lasts)
        ends = groups.told & over
        stays = ~ends & ~(over & ~groups.told & ~lasts) & ~never
        first = np.zeros(len(query), dtype=bool)
        first[np.flatnonzero(stays)[first_of_runs(groups.pair[stays])] if stays.any() else []] = True
        begins = first & lasts & ~groups.told & may
        changes = first & groups.told & groups.closer & ~self.control.after.quiet(query)
        return _ToldEncounters(begins, changes, ends, stays)

    def _chosen(self, groups: JoinedSpans, lasts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which encounters may be told, and which never will be; see `MirroredEncounters.may_be_told`."""
        query = groups.table["query"].to_numpy()
        may, never = np.ones(len(query), dtype=bool), np.zeros(len(query), dtype=bool)
        rows = np.flatnonzero((self._chooses(query) == 1) & (lasts | groups.told))
        if len(rows):
            table = groups.table.take(pa.array(rows))
            one, other = (table[name].to_numpy() for name in _PAIR[1:])
            due_us = table["since_us"].to_numpy() + self._for_us(query[rows])
            is_first = pc.less(table["key"], table["partner"]).to_numpy()
            until_us, watermark_us = table["until_us"].to_numpy(), self._until_us(query[rows])
            ways = MirroredEncounters(
                query[rows], one, other, is_first, due_us, until_us, groups.told[rows], watermark_us
            )
            may[rows], never[rows] = ways.may_be_told()
        return may, never


@dataclass(frozen=True)
class _ToldEncounters:
    """Which encounters are told to begin, to have come closer, and to have ended; and which of them stay."""

    begins: np.ndarray
    changes: np.ndarray
    ends: np.ndarray
    stays: np.ndarray

    def rows(self, groups: JoinedSpans, space: Space) -> pa.Table:
        """Return the result tuples."""
        tables = []
        for chosen, sign in ((self.begins, ENTERED), (self.changes, STAYED), (self.ends, LEFT)):
            table = groups.table.filter(pa.array(chosen))
            until_us = table["until_us"].to_numpy() if sign == LEFT else np.full(table.num_rows, OPEN_US)
            reason = table["reason"].to_numpy() if sign == LEFT else MOVED
            tables.append(_result_rows(table, sign, reason, until_us, space))
        return pa.concat_tables(tables)


def _ranked(ordered: np.ndarray) -> np.ndarray:
    """Return numbers, ascending, each with how often it came before, as an array of shape (2, N)."""
    return np.stack([ordered, place_in_runs(ordered)])


def _matched(wanted: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the position in `known` of each column of `wanted`, and whether it is there; both are ordered."""
    most = 1 + max(wanted[1].max(initial=0), known[1].max(initial=0))
    return find(known[0] * most + known[1], wanted[0] * most + wanted[1])


def encounter_codec(space: Space) -> Codec:
    """Return the codec of `EncounterAnswers` in a space."""
    columns = _no_columns(space)

    def encode(state: EncounterAnswers) -> Parts:
        tables = {"pairs": state.pairs}
        head = heads_of(tables) | {"left_out": left_out_rows(state.left_out)}
        return {HEAD: Tables([with_head(NOTHING, head)])} | parts_of(tables)

    def decode(parts: Parts) -> EncounterAnswers:
        (table,) = parts[HEAD].tables()
        head = head_of(table)
        return EncounterAnswers(table_of("pairs", columns, head, parts), left_out_of_rows(head["left_out"]))

    return Codec(lambda batch: EncounterAnswers.none(space, first_number(batch)), encode, decode)

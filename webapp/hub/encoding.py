"""Encode the frames of a batch: the answer of one query each, or the changes of several answers together."""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.operators.runs import expand, find
from streaming.results import frame, frames, joined_columns, json_rows, read_frame
from streaming.spaces import Space
from webapp.hub.assembly import Batch
from webapp.hub.subscriptions import CHANGE, CHANGES, SNAPSHOT, FrameOf, JoinedOf

logger = logging.getLogger(__name__)

# Among fewer rows, to look for alike ones takes longer than to encode them.
MANY_ROWS = 100
# What all rows have, and by which they may be alike; a row that has anything else is like no other.
OF_ALL = ("sign", "reason", "key", "time_us", "properties", "partner_hash")
NOT_COMPARED = ("query", "key_hash", "bounds", *OF_ALL)


@dataclass(frozen=True)
class Encoded:
    """The encoded frames of a batch, without empty changes; the frames that failed to encode; the errors by query.

    In place of a joined frame, the frames of those of its queries that failed are in `lost`.
    """

    frames: dict[FrameOf | JoinedOf, str | bytes] = field(default_factory=dict)
    lost: set[FrameOf] = field(default_factory=set)
    errors: dict[int, str] = field(default_factory=dict)


def encode(batch: Batch, wanted: Iterable[FrameOf | JoinedOf], now_us: int, space: Space) -> Encoded:
    """Return the encoded frames of a batch; an error in one answer affects its query only.

    Parameters
    ----------
    batch : Batch
    wanted : iterable of FrameOf and JoinedOf
        Names of the frames to encode.
    now_us : int
        The wall clock in microseconds since 1970 UTC, for the lag.
    space : Space
    """
    wanted = list(wanted)
    joined = [want for want in wanted if isinstance(want, JoinedOf)]
    alone = [want for want in wanted if isinstance(want, FrameOf)]
    changed = {want.query for want in alone if want.kind == CHANGE}.union(*(want.queries for want in joined))
    whole = {want.query for want in alone if want.kind == SNAPSHOT}
    json = any(want.format == "json" for want in wanted)
    lag_ms = round((now_us - batch.newest_us) / 1000) if batch.newest_us else None
    head = {"epoch": batch.epoch, "batch": batch.number, "lag_ms": lag_ms}
    changes = NetChanges(batch, changed, json, space)
    answers = {CHANGE: changes, SNAPSHOT: AnswerRows(batch.snapshots(whole).combine_chunks(), json, space)}
    encoded = Encoded()
    for want in alone:
        with _caught(encoded, want, batch):
            _encode_alone(encoded, want, answers[want.kind], head)
    for form in {want.format for want in joined}:
        join = _join_json if form == "json" else _join_arrow
        join(encoded, [want for want in joined if want.format == form], changes, {"type": CHANGES} | head)
    return encoded


class AnswerRows:
    """Rows of several answers, which are turned into JSON objects together: a call of arrow costs more than its rows.

    If that fails, each answer is turned alone.

    Parameters
    ----------
    rows : pyarrow.Table
        Sorted by query, in one piece.
    json : bool
        Whether JSON objects are needed.
    space : Space

    Attributes
    ----------
    queries, first, count : ndarray of int64, shape (queries with rows,)
        The queries in ascending order, where the rows of each begin, and how many it has.
    """

    def __init__(self, rows: pa.Table, json: bool, space: Space) -> None:
        self.rows, self.space = rows, space
        self.queries, self.first, self.count = np.unique(
            rows["query"].to_numpy(), return_index=True, return_counts=True
        )
        ends = (self.first + self.count).tolist()
        self._places = dict(zip(self.queries.tolist(), map(slice, self.first.tolist(), ends), strict=True))
        self._objects = self._all_objects() if json else None

    def table(self, query: int) -> pa.Table:
        """Return the rows of a query."""
        place = self._places.get(query, slice(0, 0))
        return self.rows.slice(place.start, place.stop - place.start)

    def objects(self, query: int) -> tuple[list[Any], str | None]:
        """Return the rows of a query as JSON objects for orjson, and the error of the first that could not be read."""
        if self._objects is None:
            return objects_of(self.table(query), self.space)
        rows, unread = self._objects
        place = self._places.get(query, slice(0, 0))
        return rows[place], next((unread[row] for row in unread if place.start <= row < place.stop), None)

    def _all_objects(self) -> tuple[list[Any], Mapping[int, str]] | None:
        try:
            first, of = alike(self.rows)
            told, unread = json_rows(self.rows.take(pa.array(first)), self.space)
            # Each is encoded once, however many answers have it.
            texts = [orjson.Fragment(orjson.dumps(row)) for row in told]
            return [texts[row] for row in of.tolist()], {
                row: unread[place] for row, place in enumerate(of.tolist() if unread else ()) if place in unread
            }
        except Exception:
            logger.exception("answers could not be turned into JSON together")
            return None


class NetChanges(AnswerRows):
    """The net changes of a batch in some answers. All queries are netted together; if that fails, each alone.

    Parameters
    ----------
    batch : Batch
    queries : collection of int
    json : bool
    space : Space

    Attributes
    ----------
    failed : dict of int to Exception
        The queries that could not be netted; `rows` has none of theirs.
    """

    def __init__(self, batch: Batch, queries: Collection[int], json: bool, space: Space) -> None:
        self.batch = batch
        self.failed: dict[int, Exception] = {}
        lost = batch.lost.intersection(queries)
        try:
            rows = batch.changes(frozenset(queries) - lost).combine_chunks()
        except Exception:
            logger.exception("the changes of batch %d could not be netted together", batch.number)
            lost, rows = frozenset(queries), batch.changes(())
        super().__init__(self._with_alone(batch, rows, lost) if lost else rows, json, space)

    def table(self, query: int) -> pa.Table:
        """Return the rows of a query; raise the error if they could not be netted."""
        self._check(query)
        return super().table(query)

    def objects(self, query: int) -> tuple[list[Any], str | None]:
        """Return the rows of a query as JSON objects; raise the error if they could not be netted."""
        self._check(query)
        return super().objects(query)

    def _check(self, query: int) -> None:
        if query in self.failed:
            raise self.failed[query]

    def _with_alone(self, batch: Batch, rows: pa.Table, queries: Iterable[int]) -> pa.Table:
        """Net queries one by one, and note those that fail."""
        parts = [rows]
        for query in sorted(queries):
            try:
                parts.append(batch.changes([query]))
            except Exception as error:
                self.failed[query] = error
        return pa.concat_tables(parts).sort_by([("query", "ascending"), ("sign", "ascending")]).combine_chunks()


def alike(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Find the rows that are alike but for their query: answers that overlap have the same objects.

    Parameters
    ----------
    rows : pyarrow.Table
        In one piece.

    Returns
    -------
    first : ndarray of int64, shape (D,)
        Where each row that differs from those before it stands.
    of : ndarray of int64, shape (rows,)
        Like which of these each row is.
    """
    count = rows.num_rows
    if count < MANY_ROWS:
        return np.arange(count), np.arange(count)
    special = np.zeros(count, dtype=bool)
    for name in rows.column_names:
        if name not in NOT_COMPARED and rows[name].null_count < count:
            special |= rows[name].is_valid().to_numpy()
    columns = {name: rows[name] for name in OF_ALL}
    columns |= {str(number): pa.array(bound) for number, bound in enumerate(bounds_of(rows["bounds"]).T)}
    columns["alone"] = pa.array(np.where(special, np.arange(1, count + 1), 0))
    compared = pa.table(columns)
    table = compared.append_column("row", pa.array(np.arange(count)))
    groups = table.group_by(compared.column_names, use_threads=False).aggregate([("row", "list")])
    members = groups["row_list"].combine_chunks()
    of = np.empty(count, dtype=np.int64)
    of[members.flatten().to_numpy()] = np.repeat(np.arange(len(members)), members.value_lengths().to_numpy())
    return members.flatten().to_numpy()[members.offsets.to_numpy()[:-1]], of


def objects_of(rows: pa.Table, space: Space) -> tuple[list[dict[str, Any]], str | None]:
    """Return rows as JSON objects, and the error of the first that could not be read."""
    told, unread = json_rows(rows, space)
    return told, next(iter(unread.values()), None)


def left_out(joined: str | bytes, queries: Collection[int]) -> str | bytes | None:
    """Return a joined frame without some queries; None if nothing is left of it."""
    if isinstance(joined, str):
        message = orjson.loads(joined)
        message["changes"] = [change for change in message["changes"] if change["query"] not in queries]
        return orjson.dumps(message).decode() if message["changes"] else None
    head, rows = read_frame(joined)
    rows = rows.filter(pa.array(~np.isin(rows["query"].to_numpy(), list(queries))))
    return frame(head, rows) if rows.num_rows else None


def _encode_alone(encoded: Encoded, want: FrameOf, answers: AnswerRows, head: dict[str, Any]) -> None:
    """Encode the frame of one answer; of a change, if there is one."""
    rows = answers.table(want.query)
    if want.kind == CHANGE and not rows.num_rows:
        return
    head = {"type": want.kind, "query": want.query} | head
    head |= {"resync": want.resync} if want.kind == SNAPSHOT else {}
    if want.format == "arrow":
        encoded.frames[want] = frame(head, rows)
        return
    told, error = answers.objects(want.query)
    if error:
        encoded.errors.setdefault(want.query, error)
    encoded.frames[want] = orjson.dumps(head | {"rows": told}).decode()


def _join_arrow(encoded: Encoded, joined: Sequence[JoinedOf], changes: NetChanges, head: dict[str, Any]) -> None:
    """Encode joined frames as Arrow streams: the rows of all are chosen at once."""
    for query, error in changes.failed.items():
        _note(encoded, FrameOf(CHANGE, query, "arrow"), changes.batch, error)
    of, wanted = np.repeat(np.arange(len(joined)), [len(want.queries) for want in joined]), _flat(joined)
    position, present = find(changes.queries, wanted)
    of, position = of[present], position[present]
    _, rows = expand(changes.first[position], changes.count[position])
    counts = np.bincount(of, weights=changes.count[position], minlength=len(joined)).astype(np.int64)
    full = np.flatnonzero(counts)
    made = frames(head, joined_columns(changes.rows).take(pa.array(rows)), counts[full].tolist())
    encoded.frames.update((joined[place], one) for place, one in zip(full.tolist(), made, strict=True))


def _join_json(encoded: Encoded, joined: Sequence[JoinedOf], changes: NetChanges, head: dict[str, Any]) -> None:
    """Encode joined frames as JSON: the rows of each query once for all of them."""
    texts, start = {}, orjson.dumps(head).decode()[:-1] + ',"changes":['
    for query in np.unique(_flat(joined)).tolist():
        with _caught(encoded, FrameOf(CHANGE, query, "json"), changes.batch):
            rows, error = changes.objects(query)
            if error:
                encoded.errors.setdefault(query, error)
            if rows:
                texts[query] = orjson.dumps({"query": query, "rows": rows}).decode()
    for want in joined:
        if parts := [texts[query] for query in want.queries if query in texts]:
            encoded.frames[want] = f"{start}{','.join(parts)}]}}"


def _flat(joined: Iterable[JoinedOf]) -> np.ndarray:
    return np.fromiter(chain.from_iterable(want.queries for want in joined), np.int64)


@contextmanager
def _caught(encoded: Encoded, want: FrameOf, batch: Batch) -> Iterator[None]:
    """Note an error of one answer, which must not keep the others from being sent."""
    try:
        yield
    except Exception as error:
        _note(encoded, want, batch, error)


def _note(encoded: Encoded, want: FrameOf, batch: Batch, error: Exception) -> None:
    logger.error("an answer of query %d could not be told", want.query, exc_info=error)
    encoded.lost.add(want)
    encoded.errors[want.query] = f"the answer of batch {batch.number} could not be told: {error!s:.200}"

"""Result tuples: the one format in which the engine reports the answers of continuous queries.

A *fragment* is what one region publishes about one micro-batch. The fragments of all regions, netted, are the batch's
result. A client receives this result cut by query and framed.

References
----------
PLACE* (2007), section 3.2: incremental evaluation by positive and negative tuples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_document, bounds_of
from streaming.kinds.registry import DETAILS
from streaming.language import gettext
from streaming.spaces import EARTH, Space

LEFT, STAYED, ENTERED = -1, 0, 1
# The tuple names no member of the answer, but tells where the query itself is.
PLACED = 2
SIGNS = {LEFT: "-", STAYED: "~", ENTERED: "+", PLACED: "@"}

# Why a tuple was produced, by its code in the column `reason`.
REASONS = (
    *("moved", "registered", "edited", "cancelled", "expired", "handoff", "dropped", "snapshot", "filtered", "failed"),
    *("partner_moved", "partner_filtered", "focus_moved", "others_moved", "passed"),
)
MOVED, REGISTERED, EDITED, CANCELLED, EXPIRED, HANDOFF, DROPPED, SNAPSHOT, FILTERED, FAILED = range(10)
PARTNER_MOVED, PARTNER_FILTERED, FOCUS_MOVED, OTHERS_MOVED, PASSED = range(10, len(REASONS))
# A handoff in an answer that reports membership alone. Netted with the entry in another region it gives no tuple.
QUIET_HANDOFF = len(REASONS)
# The same for pairs of which the partner alone departed: netting tells that the partner moved.
PARTNER_HANDOFF, QUIET_PARTNER_HANDOFF = len(REASONS) + 1, len(REASONS) + 2

# Numbers of queries from here on belong to views, which are not saved.
VIEW_NUMBERS = 2**40
# Numbers from here on belong to answers, which several queries with equal plans may share.
ANSWER_NUMBERS = 2**62

# Why a query is left out: there was no room for it, or it failed.
ROOM, FAILURE = "room", "failure"

# Columns about partners and ranks, and those that only some kinds of queries have.
SOMETIMES = (
    *("partner", "partner_properties", "distance", "rank"),
    *(name for detail in DETAILS for name in detail.columns),
)

FRAME_METADATA = b"lookout"
# https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def result_schema(space: Space) -> pa.Schema:
    """Return the columns of result tuples.

    Returns
    -------
    pyarrow.Schema
        query : int64; in a fragment, numbers from `ANSWER_NUMBERS` on are those of answers that several queries share;
        sign : int8, `ENTERED`, `STAYED` or `LEFT` (in a snapshot `ENTERED`); `PLACED` for the place of a query;
        reason : int8, a code of `REASONS`;
        key, key_hash, time_us, bounds, properties : as in `elements.element_schema`, of the object's newest element;
        with `PLACED` of the focal object's, or a fixed place with an empty key; for aggregates see docs/plans.md;
        partner : string; in a join the key of the feature or object with which the object is paired, in an aggregate
        the name of the threshold that is crossed; null otherwise;
        partner_hash : int64, the hash of the partner, or the position of the threshold plus 1; 0 otherwise;
        partner_properties : string, the properties of the partner, a JSON object;
        distance : float64, for joins by distance and kNN, metres in a geographic space; with `PLACED` the radius of the
        circle or of the search region; null otherwise, and in ``-``; for encounters, the least so far, also in ``-``;
        rank : int32, for kNN, 1 for the nearest; null otherwise, and in ``-``;
        and the details that kinds of queries declare (`Kind.details`), null for queries of other kinds.
    """
    return pa.schema(
        [
            pa.field("query", pa.int64(), nullable=False),
            pa.field("sign", pa.int8(), nullable=False),
            pa.field("reason", pa.int8(), nullable=False),
            pa.field("key", pa.string(), nullable=False),
            pa.field("key_hash", pa.int64(), nullable=False),
            pa.field("time_us", pa.int64(), nullable=False),
            pa.field("bounds", pa.list_(pa.float64(), 2 * space.n), nullable=False),
            pa.field("properties", pa.string()),
            pa.field("partner", pa.string()),
            pa.field("partner_hash", pa.int64(), nullable=False),
            pa.field("partner_properties", pa.string()),
            pa.field("distance", pa.float64()),
            pa.field("rank", pa.int32()),
            *(column for detail in DETAILS for column in detail.fields(space)),
        ]
    )


@dataclass(frozen=True)
class Fragment:
    """What one region reports about one micro-batch.

    Parameters
    ----------
    epoch : str
        Names the engine's checkpoint; batch numbers of different epochs cannot be compared.
    batch, region, regions : int
        The micro-batch; the region's number; how many regions there are. A batch is complete with `regions` fragments.
        While there are distributed queries, the assembler counts as one more region, `region_map.MOST_REGIONS`.
    changes, snapshots : pyarrow.Table
        With `result_schema`. `changes` may hold several tuples of one (query, key, partner) until it is netted.
    snapshot_queries : tuple of int
        The queries whose whole answer is in `snapshots` (it may be empty).
    acks : tuple of dict
        Control entries applied in this batch: ``{"query", "revision", "op", "error"}``; `error` is null or a text. The
        fragment of region 0 alone has them.
    counters : dict
        Elements read, stale versions dropped, objects held and so on, by name.
    newest_us : int
        Wall-clock time at which the newest element of the batch reached the gateway; 0 without elements.
    failures : tuple of dict
        What failed: ``{"error", "queries"}``, the latter a list of query and revision, [q, r]. These run, and a part of
        them failed; with a ``kind``, ``"late"`` or ``"doubted"``, they did not use so many ``reports``. With
        ``left_out``, `ROOM` or `FAILURE`, the region evaluates them again at `until_us` at the earliest; with ``"lost":
        true`` it could not even report that its part of their answers ended. With ``"refused": true`` they have ended.
    shared : mapping of int to tuple of int
        The queries of each answer in `changes` that several queries share.
    sent : mapping of int to tuple of int
        For each query that the assembler answers, how many partial tuples each region sent to it in this batch.
    costs : dict
        Empty, or `ms`, how long the region's step took, `queries`, a list of [query, revision, milliseconds] of those
        whose evaluation took long, and `owners`, a list of [owner, milliseconds, query, revision, milliseconds] of
        those whose queries took long together, with the one of them that took longest. Two runs of a batch may differ
        in these measurements alone.
    aggregates : tuple of int
        The queries in `changes` whose tuples are about groups, not objects: only their thresholds are events.
    clocks : tuple of dict
        The clocks of rules that were asked for (`rule_clock.RuleClock`); the assembler alone has them.
    stale : mapping of int to int
        How many elements of each stream, by `elements.stream_number`, were older than the newest known of their object.
    """

    epoch: str
    batch: int
    region: int
    regions: int
    changes: pa.Table
    snapshots: pa.Table
    snapshot_queries: tuple[int, ...] = ()
    acks: tuple[dict, ...] = ()
    counters: dict = field(default_factory=dict)
    newest_us: int = 0
    failures: tuple[dict, ...] = ()
    shared: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    sent: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    aggregates: tuple[int, ...] = ()
    stale: Mapping[int, int] = field(default_factory=dict)
    costs: dict = field(default_factory=dict)
    clocks: tuple[dict, ...] = ()


def events_of(fragment: Fragment) -> Fragment:
    """Return a fragment with only the events of saved queries (entries and exits), the failures and the costs.

    The events of aggregates are thresholds that are crossed, or no longer crossed. To net such fragments of all regions
    gives the same ``+`` and ``-`` as to net whole fragments: a handoff pairs a ``-`` with a ``+``, never with a ``~``.
    """
    shared = {
        answer: saved
        for answer, queries in fragment.shared.items()
        if (saved := tuple(query for query in queries if query < VIEW_NUMBERS))
    }
    query, sign = (fragment.changes[name].to_numpy() for name in ("query", "sign"))
    told = ((sign == ENTERED) | (sign == LEFT)) & ((query < VIEW_NUMBERS) | np.isin(query, list(shared)))
    if fragment.aggregates:
        told &= ~np.isin(query, fragment.aggregates) | fragment.changes["partner"].is_valid().to_numpy()
    return replace(
        fragment,
        changes=fragment.changes.filter(pa.array(told)),
        snapshots=fragment.snapshots.slice(0, 0),
        snapshot_queries=(),
        acks=(),
        shared=shared,
        stale={},
        clocks=(),
    )


def frame(message: dict[str, Any], rows: pa.Table) -> bytes:
    """Return a binary websocket frame: an Arrow IPC stream whose schema metadata holds the message's head as JSON.

    Parameters
    ----------
    message : dict
        For instance ``{"type": "answer.change", "query": 7, "batch": 12}``.
    rows : pyarrow.Table
        With `result_schema`, of that query alone.
    """
    schema = rows.schema.with_metadata({FRAME_METADATA: orjson.dumps(message)})
    # The same bytes as those of a stream writer, which takes twice as long for a few rows.
    parts = [schema.serialize(), *(batch.serialize() for batch in rows.combine_chunks().to_batches())]
    return b"".join(part.to_pybytes() for part in parts) + END_OF_STREAM


def frames(message: dict[str, Any], rows: pa.Table, counts: Sequence[int]) -> list[bytes]:
    """Return binary frames with the same head, each with the rows that follow those of the one before.

    Parameters
    ----------
    message : dict
    rows : pyarrow.Table
    counts : sequence of int
        The number of rows of each frame, at least 1; they add up to all rows.
    """
    schema = rows.schema.with_metadata({FRAME_METADATA: orjson.dumps(message)})
    head, sink, row, ends = schema.serialize().to_pybytes(), pa.BufferOutputStream(), 0, []
    # One writer for all frames takes half as long as to serialize each.
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in rows.replace_schema_metadata(schema.metadata).combine_chunks().to_batches():
            for count in counts:
                writer.write_batch(batch.slice(row, count))
                ends.append(sink.tell())
                row += count
    written = memoryview(sink.getvalue())
    return [b"".join((head, written[start:end], END_OF_STREAM)) for start, end in pairwise([len(head), *ends])]


def joined_columns(rows: pa.Table) -> pa.Table:
    """Return the columns of a joined frame: no hashes, and of the columns about partners and ranks none of nulls."""
    hidden = {"key_hash", "partner_hash"}
    hidden |= {name for name in SOMETIMES if rows[name].null_count == rows.num_rows}
    return rows.select([name for name in rows.schema.names if name not in hidden])


def read_frame(payload: bytes) -> tuple[dict[str, Any], pa.Table]:
    """Return the head and the rows of a binary frame; the inverse of `frame`."""
    table = pa.ipc.open_stream(payload).read_all()
    return orjson.loads(table.schema.metadata[FRAME_METADATA]), table


def json_rows(rows: pa.Table, space: Space = EARTH) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return result tuples as JSON text frames show them, and the errors of properties that could not be read.

    Returns
    -------
    rows : list of dict
        With `sign` ("+", "~", "-", "@"), `key`, `time_us`, `lon`, `lat` (the middle of the box in a geographic space;
        null where unbounded, and in other spaces), `bounds`, `reason` and `properties` (an object). Joins and
        thresholds add `partner`, an object with its `key`, `properties` and `distance` (null except in a join by
        distance); joins over event time and encounters also tell the `time_us` and the `bounds` of the partner's
        report; window joins tell the beginning of the window, `window_us`; encounters tell `since_us` and, in ``-``,
        `until_us`; alarms about silence tell in ``+`` when the object was heard last, `since_us`; kNN adds `distance`
        and `rank`, but not in ``-``; the sign "@" adds `distance`. An entry or exit of a track that is interpolated has
        `interpolated`, true, `from_us` and `to_us`. Closest approaches add `closest`, an object with `time_us`,
        `after_s` and the two `places`.
    unread : dict of int to str
        The errors, by position. Properties that cannot be read as JSON appear as empty, so that one element does not
        hold back the others.
    """
    unread: dict[int, str] = {}
    boxes = bounds_of(rows["bounds"])
    with np.errstate(invalid="ignore"):  # an unbounded dimension has no middle
        middle = (boxes[:, : space.n] + boxes[:, space.n :]) / 2
    columns = zip(
        rows["sign"].to_pylist(),
        rows["key"].to_pylist(),
        rows["time_us"].to_pylist(),
        middle.tolist(),
        boxes.tolist(),
        rows["reason"].to_pylist(),
        _objects(rows, "properties", "key", unread),
        _further(rows, unread),
        strict=True,
    )
    told = [
        {
            "sign": SIGNS[sign],
            "key": key,
            "time_us": time_us,
            "lon": _finite(center[0]) if space.geographic else None,
            "lat": _finite(center[1]) if space.geographic else None,
            "bounds": bounds_document(box),
            "reason": REASONS[reason],
            "properties": properties,
        }
        | further
        for sign, key, time_us, center, box, reason, properties, further in columns
    ]
    return told, unread


def _objects(rows: pa.Table, name: str, key: str, unread: dict[int, str]) -> list[dict[str, Any]]:
    """Return a column of JSON objects; a text that is none becomes an empty one, with an entry in `unread`."""
    objects = []
    for row, text in enumerate(rows[name].to_pylist()):
        found, error = _object(text or "{}")
        objects.append(found)
        if error:
            of = rows[key][row].as_py()
            unread[row] = gettext("properties must be a JSON object; those of %(of)s are told as empty: %(error)s") % {
                "of": f"{of!r:.80}",
                "error": error,
            }
    return objects


def _object(text: str) -> tuple[dict[str, Any], str | None]:
    """Return the JSON object of a text, and None; or an empty one, and what is wrong."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return {}, str(error)
    return (found, None) if isinstance(found, dict) else ({}, gettext("got %(text)s") % {"text": f"{text:.80}"})


def _further(rows: pa.Table, unread: dict[int, str]) -> list[dict[str, Any]]:
    """Return the partner, the distance and the rank of each row, where it has them, as JSON objects show them."""
    columns = [rows[name].to_pylist() for name in ("sign", "partner", "distance", "rank")]
    told = list(map(_told, *columns, _objects(rows, "partner_properties", "partner", unread)))
    for detail in DETAILS:
        columns = [rows[name] for name in detail.columns]
        for row in np.flatnonzero(columns[0].is_valid().to_numpy()).tolist():
            detail.told(told[row], [column[row].as_py() for column in columns])
    return told


def _told(
    sign: int, partner: str | None, distance: float | None, rank: int | None, properties: dict[str, Any]
) -> dict[str, Any]:
    if partner is not None:
        return {"partner": {"key": partner, "properties": properties, "distance": distance}}
    if rank is not None:
        return {"distance": distance, "rank": rank}
    return {"distance": distance} if sign == PLACED else {}


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None

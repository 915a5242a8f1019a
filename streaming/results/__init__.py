"""Result tuples: what the engine says of its continuous queries, and the one format in which it says it.

A *fragment* is what one region publishes about one micro-batch. Fragments of all regions, netted, are the batch's
result; cut by query and framed, it is what a client receives.

References
----------
PLACE* (2007), section 2: incremental evaluation by positive and negative tuples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.spaces import EARTH, Space

LEFT, STAYED, ENTERED = -1, 0, 1
# No member of the answer, but where the query itself is.
PLACED = 2
SIGNS = {LEFT: "-", STAYED: "~", ENTERED: "+", PLACED: "@"}

# Why a tuple was produced, by its code in the column `reason`.
REASONS = (
    *("moved", "registered", "edited", "cancelled", "expired", "handoff", "dropped", "snapshot", "filtered", "failed"),
    *("partner_moved", "partner_filtered", "focus_moved", "others_moved"),
)
MOVED, REGISTERED, EDITED, CANCELLED, EXPIRED, HANDOFF, DROPPED, SNAPSHOT, FILTERED, FAILED = range(10)
PARTNER_MOVED, PARTNER_FILTERED, FOCUS_MOVED, OTHERS_MOVED = range(10, len(REASONS))
# A handoff in an answer of which membership alone is told. The assembler nets it with the entry elsewhere to nothing.
QUIET_HANDOFF = len(REASONS)

# Numbers of queries from here on belong to views, which nobody saved.
VIEW_NUMBERS = 2**40
# Numbers from here on belong to answers, which several queries with equal plans may share.
ANSWER_NUMBERS = 2**62

FRAME_METADATA = b"lookout"


def result_schema(space: Space) -> pa.Schema:
    """Return the columns of result tuples.

    Returns
    -------
    pyarrow.Schema
        query : int64, in a fragment of `ANSWER_NUMBERS` on that of an answer which several queries share;
        sign : int8, `ENTERED`, `STAYED` or `LEFT` (in a snapshot `ENTERED`); `PLACED` of a query that moves;
        reason : int8, a code of `REASONS`;
        key, key_hash, time_us, bounds, properties : as in `elements.element_schema`, of the object's newest element;
        with `PLACED` of the focal object's, or a fixed place with an empty key; of an aggregate see docs/plans.md;
        partner : string, of a join the key of the feature or object with which the object is paired, of an aggregate
        the name of the threshold that is crossed; null otherwise;
        partner_hash : int64, its hash; 0 otherwise;
        partner_properties : string, its properties, a JSON object;
        distance : float64, of a join by distance and of kNN; metres in a geographic space; with `PLACED` the radius of
        the circle or of the search region; null otherwise, and in ``-``;
        rank : int32, of kNN; 1 for the nearest; null otherwise, and in ``-``.
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
        ]
    )


@dataclass(frozen=True)
class Fragment:
    """What one region says about one micro-batch.

    Parameters
    ----------
    epoch : str
        Names the engine's checkpoint; batch numbers of different epochs cannot be compared.
    batch, region, regions : int
        The micro-batch; the region's number; how many there are. A batch is complete with `regions` fragments. The
        assembler of kNN and aggregates is the last of them, while there are queries that move or need it.
    changes, snapshots : pyarrow.Table
        With `result_schema`. `changes` may hold several tuples of one (query, key, partner) until
        it is netted.
    snapshot_queries : tuple of int
        The queries whose whole answer stands in `snapshots` (it may be empty).
    acks : tuple of dict
        Control entries applied in this batch: ``{"query", "revision", "op", "error"}``; `error` is null or a text.
    counters : dict
        Elements read, stale versions dropped, objects held and so on, by name.
    newest_us : int
        Wall-clock time at which the newest element of the batch reached the gateway; 0 without elements.
    failures : tuple of dict
        What failed: ``{"error", "queries"}``, the latter a list of query and revision, [q, r]. With ``"refused": true``
        these have ended; with ``"lost": true`` the region could not even tell that its part of their answers ended.
    shared : mapping of int to tuple of int
        The queries of each answer that stands in `changes` for several.
    sent : mapping of int to tuple of int
        By query that the assembler answers, how many partial tuples each region sent to it in this batch.
    costs : dict
        Empty, or `ms`, how long the region's step took, and `queries`, a list of [query, revision, milliseconds] of
        those whose evaluation took long. In these measurements alone two runs of a batch may differ.
    aggregates : tuple of int
        The queries in `changes` whose tuples tell of groups, not of objects: only their thresholds are events.
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


def events_of(fragment: Fragment) -> Fragment:
    """Return what a fragment says of saved queries' objects that enter or leave, of failures and costs; nothing else.

    Of aggregates these are the thresholds that are crossed, or not any more. Netting such fragments of all regions
    gives the ``+`` and ``-`` of the whole fragments' net: a handoff pairs a ``-`` with a ``+``, never with a ``~``.
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
    )


def frame(message: dict[str, Any], rows: pa.Table) -> bytes:
    """Return a binary websocket frame: an Arrow IPC stream whose schema metadata carries the message's head as JSON.

    Parameters
    ----------
    message : dict
        For instance ``{"type": "answer.change", "query": 7, "batch": 12}``.
    rows : pyarrow.Table
        With `result_schema`, of that query alone.
    """
    schema = rows.schema.with_metadata({FRAME_METADATA: orjson.dumps(message)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in rows.combine_chunks().to_batches():
            writer.write_batch(batch.replace_schema_metadata(schema.metadata))
    return sink.getvalue().to_pybytes()


def read_frame(payload: bytes) -> tuple[dict[str, Any], pa.Table]:
    """Return the head and the rows of a binary frame; the inverse of `frame`."""
    table = pa.ipc.open_stream(payload).read_all()
    return orjson.loads(table.schema.metadata[FRAME_METADATA]), table


def json_rows(rows: pa.Table, space: Space = EARTH) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return result tuples as JSON text frames show them, and what of them could not be read, by their positions.

    Returns
    -------
    rows : list of dict
        With `sign` ("+", "~", "-", "@"), `key`, `time_us`, `lon`, `lat` (the middle of the box in a geographic space;
        null where unbounded, and in other spaces), `bounds`, `reason` and `properties` (an object); of a join or a
        threshold also `partner`, an object with its `key`, `properties` and `distance` (null but of a join by
        distance); of kNN also `distance` and `rank`, but not in ``-``; with the sign "@" also `distance`.
    unread : dict of int to str
        Properties that are no JSON object are told as empty, so that one element does not keep the others' from
        being told.
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
            "bounds": [_finite(bound) for bound in box],
            "reason": REASONS[reason],
            "properties": properties,
        }
        | further
        for sign, key, time_us, center, box, reason, properties, further in columns
    ]
    return told, unread


def _objects(rows, name, key, unread):
    """Return a column of JSON objects; where one is none an empty one, and `unread` is told."""
    objects = []
    for row, text in enumerate(rows[name].to_pylist()):
        try:
            objects.append(orjson.loads(text or "{}"))
        except orjson.JSONDecodeError as error:
            objects.append({})
            of = rows[key][row].as_py()
            unread[row] = f"properties must be a JSON object; those of {of!r:.80} are told as empty: {error}"
    return objects


def _further(rows, unread):
    """Return what rows say of partners, distances and ranks, as far as there are any."""
    columns = [rows[name].to_pylist() for name in ("sign", "partner", "distance", "rank")]
    return list(map(_told, *columns, _objects(rows, "partner_properties", "partner", unread)))


def _told(sign, partner, distance, rank, properties):
    if partner is not None:
        return {"partner": {"key": partner, "properties": properties, "distance": distance}}
    if rank is not None:
        return {"distance": distance, "rank": rank}
    return {"distance": distance} if sign == PLACED else {}


def _finite(value):
    return value if abs(value) < float("inf") else None

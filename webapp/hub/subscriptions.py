"""Subscriptions to answers, and the frames of a batch that each of them gets."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson
import pyarrow as pa

from streaming.results import frame, json_rows
from streaming.spaces import Space
from webapp.hub.assembly import Batch, slices_of
from webapp.hub.shipping import ResumePoint

logger = logging.getLogger(__name__)

FORMATS = ("json", "arrow")
SNAPSHOT, CHANGE = "answer.snapshot", "answer.change"
RESUMED, HELD = "answer.resumed", "answer.held"


class Subscriber(Protocol):
    """A connection, as the hub sees it."""

    def deliver(self, subscription: "Subscription", frame: str | bytes) -> None:
        """Take an answer. It must not wait or fail."""

    def broadcast(self, slot: str, text: str) -> None:
        """Take a message that replaces an unsent one of the same slot. It must not wait or fail."""

    def mark(self, space: str, text: str) -> None:
        """Take a text that says up to which batch the client has all changes. It must not wait or fail."""


@dataclass(eq=False)
class Subscription:
    """The subscription of one connection to the answer of one query.

    Attributes
    ----------
    live : bool
        The client holds an answer to which later changes can be applied.
    catching_up : bool
        The client still gets the batches that it missed; new batches follow afterwards.
    held : int
        The batch with which the client came back, in the present epoch; -1 without one. Only changes of later batches
        are sent.
    waiting : bool
        A snapshot has been asked for and has not come yet.
    resync : bool
        That snapshot follows a loss.
    sent_before : ndarray of int64, shape (regions,)
        How many tuples each region had sent for the query when the subscription began.
    closed : bool
        The subscription has ended: nothing more may be sent.
    """

    subscriber: Subscriber
    query: int
    format: str
    live: bool = False
    catching_up: bool = False
    held: int = -1
    waiting: bool = False
    resync: bool = False
    sent_before: np.ndarray | None = None
    closed: bool = False

    def put_off(self) -> None:
        """Mark an answer that could not be encoded as lost, and a snapshot as asked for."""
        self.lose()
        self.waiting = self.resync = True

    def lose(self) -> None:
        """Mark the answer as lost, so that no changes are sent until the next snapshot."""
        self.live = self.catching_up = self.waiting = False
        self.held = -1

    @cached_property
    def change(self) -> "FrameOf":
        """The name of the frame with a batch's changes."""
        return FrameOf(CHANGE, self.query, self.format)


class FrameOf(NamedTuple):
    """The name of a frame of a batch. Connections that need the same frame share its bytes."""

    kind: str
    query: int
    format: str
    resync: bool = False


def due(subscription: Subscription, number: int, snapshots: frozenset[int]) -> list[FrameOf]:
    """Return the frames that a subscription gets of batch `number`, which has the snapshots of some queries."""
    goes_on = subscription.live and not subscription.catching_up and number > subscription.held
    frames = [subscription.change] if goes_on else []
    if subscription.waiting and subscription.query in snapshots:
        frames.append(FrameOf(SNAPSHOT, subscription.query, subscription.format, subscription.resync))
    return frames


@dataclass(frozen=True)
class Encoded:
    """The encoded frames of a batch, without empty changes; the frames that failed to encode; the errors by query."""

    frames: dict[FrameOf, str | bytes] = field(default_factory=dict)
    lost: set[FrameOf] = field(default_factory=set)
    errors: dict[int, str] = field(default_factory=dict)


def encode(batch: Batch, wanted: Iterable[FrameOf], now_us: int, space: Space) -> Encoded:
    """Return the encoded frames of a batch; an error in one frame affects its query only.

    Parameters
    ----------
    batch : Batch
    wanted : iterable of FrameOf
        Names of the frames to encode.
    now_us : int
        The wall clock in microseconds since 1970 UTC, for the lag.
    space : Space
    """
    wanted, encoded = list(wanted), Encoded()
    rows_of = _changes(
        batch, {w.query for w in wanted if w.kind == CHANGE}, any(w.format == "json" for w in wanted), space
    )
    lag_ms = round((now_us - batch.newest_us) / 1000) if batch.newest_us else None
    for want in wanted:
        try:
            rows = _Rows(batch.snapshot(want.query), space) if want.kind == SNAPSHOT else rows_of(want.query)
            if want.kind == SNAPSHOT or rows.table.num_rows:
                head = {"type": want.kind, "query": want.query, "epoch": batch.epoch, "batch": batch.number}
                head |= {"lag_ms": lag_ms}
                head |= {"resync": want.resync} if want.kind == SNAPSHOT else {}
                encoded.frames[want] = _encoded(head, rows, want.format, encoded.errors)
        # One bad answer must not keep the others from being sent.
        except Exception as error:
            logger.exception("an answer of query %d could not be told", want.query)
            encoded.lost.add(want)
            encoded.errors[want.query] = f"the answer of batch {batch.number} could not be told: {error!s:.200}"
    return encoded


@dataclass
class _Rows:
    """The rows of one frame: as a table, and as JSON objects with the error of the first that could not be read."""

    table: pa.Table
    space: Space
    told: tuple[list[dict[str, Any]], str | None] | None = None

    def as_json(self) -> tuple[list[dict[str, Any]], str | None]:
        if self.told is None:
            rows, unread = json_rows(self.table, self.space)
            self.told = rows, next(iter(unread.values()), None)
        return self.told


def _changes(batch, queries, json, space) -> Callable[[int], _Rows]:
    """Return a function from a query to its net changes.

    All queries are netted together, and turned into JSON objects together if `json` is set: a call of arrow costs more
    than its rows. If that fails, each query is treated alone.
    """
    try:
        changes = batch.changes(queries).combine_chunks() if queries else None
        told, unread = json_rows(changes, space) if queries and json else (None, {})
    except Exception:
        logger.exception("the changes of batch %d could not be treated together", batch.number)
        return lambda query: _Rows(batch.changes([query]), space)
    places = slices_of(changes) if queries else {}
    nothing = slice(0, 0)

    def rows_of(query):
        place = places.get(query, nothing)
        rows = changes.slice(place.start, place.stop - place.start)
        if told is None:
            return _Rows(rows, space)
        error = next((unread[row] for row in unread if place.start <= row < place.stop), None)
        return _Rows(rows, space, (told[place], error))

    return rows_of


def resumed(query: int, held: ResumePoint) -> str:
    """Return the message ``answer.resumed``: the answer continues after the batch that the client holds."""
    return orjson.dumps({"type": RESUMED, "query": query, "epoch": held.epoch, "batch": held.batch}).decode()


def held_text(space: str, held: ResumePoint, behind: list[int]) -> str:
    """Return the message ``answer.held``: the client has all changes up to batch `held`, except of queries `behind`."""
    told = {"type": HELD, "space": space, "epoch": held.epoch, "batch": held.batch, "without": behind}
    return orjson.dumps(told).decode()


def _encoded(head: dict[str, Any], rows: _Rows, form: str, errors: dict[int, str]) -> str | bytes:
    if form == "arrow":
        return frame(head, rows.table)
    told, error = rows.as_json()
    if error:
        errors.setdefault(head["query"], error)
    return orjson.dumps(head | {"rows": told}).decode()

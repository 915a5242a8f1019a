"""Subscriptions to answers, and the frames of a batch that each of them gets."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa

from streaming.results import frame, json_rows
from streaming.spaces import Space
from webapp.hub.assembly import Batch, rows_of
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
        The last batch that the client got by catching up, in the present epoch; -1 without one. Only changes of later
        batches are sent.
    waiting : bool
        A snapshot has been asked for and has not come yet.
    resync : bool
        That snapshot follows a loss.
    asked : float
        When the snapshot was last asked for, by `time.monotonic` in seconds.
    patience_s : float
        Seconds after which it is asked for again.
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
    asked: float = 0.0
    patience_s: float = 2.0
    sent_before: np.ndarray | None = None
    closed: bool = False

    def put_off(self) -> None:
        """Mark an answer that could not be encoded as lost; a snapshot is asked for after `patience_s`."""
        self.lose()
        self.waiting, self.resync, self.asked = True, True, time.monotonic()

    def lose(self) -> None:
        """Mark the answer as lost, so that no changes are sent until the next snapshot."""
        self.live = self.catching_up = self.waiting = False
        self.held = -1

    @property
    def change(self) -> "FrameOf":
        """The name of the frame with a batch's changes."""
        return FrameOf(CHANGE, self.query, self.format)


@dataclass(frozen=True)
class FrameOf:
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
    wanted = list(wanted)
    changes = _changes(batch, {w.query for w in wanted if w.kind == CHANGE})
    lag_ms = round((now_us - batch.newest_us) / 1000) if batch.newest_us else None
    encoded = Encoded()
    for want in wanted:
        try:
            rows = batch.snapshot(want.query) if want.kind == SNAPSHOT else changes(want.query)
            if want.kind == SNAPSHOT or rows.num_rows:
                head = {"type": want.kind, "query": want.query, "epoch": batch.epoch, "batch": batch.number}
                head |= {"lag_ms": lag_ms}
                head |= {"resync": want.resync} if want.kind == SNAPSHOT else {}
                encoded.frames[want] = _encoded(head, rows, want.format, space, encoded.errors)
        # One bad answer must not keep the others from being sent.
        except Exception as error:
            logger.exception("an answer of query %d could not be told", want.query)
            encoded.lost.add(want)
            encoded.errors[want.query] = f"the answer of batch {batch.number} could not be told: {error!s:.200}"
    return encoded


def _changes(batch, queries):
    """Return a function from a query to its net changes. If netting all queries together fails, it nets each alone."""
    try:
        changes = batch.changes(queries) if queries else None
    except Exception:
        logger.exception("the changes of batch %d could not be netted together", batch.number)
        return lambda query: batch.changes([query])
    return lambda query: rows_of(changes, query)


def resumed(query: int, held: ResumePoint) -> str:
    """Return the message ``answer.resumed``: the answer continues after the batch that the client holds."""
    return orjson.dumps({"type": RESUMED, "query": query, "epoch": held.epoch, "batch": held.batch}).decode()


def held_text(space: str, held: ResumePoint, behind: list[int]) -> str:
    """Return the message ``answer.held``: the client has all changes up to batch `held`, except of queries `behind`."""
    told = {"type": HELD, "space": space, "epoch": held.epoch, "batch": held.batch, "without": behind}
    return orjson.dumps(told).decode()


def _encoded(head: dict[str, Any], rows: pa.Table, form: str, space: Space, errors: dict[int, str]) -> str | bytes:
    if form == "arrow":
        return frame(head, rows)
    told, unread = json_rows(rows, space)
    if unread:
        errors.setdefault(head["query"], next(iter(unread.values())))
    return orjson.dumps(head | {"rows": told}).decode()

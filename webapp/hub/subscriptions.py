"""Who gets which answer: subscriptions, and the frames that one batch means for them."""

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
        """Take an answer; must neither wait nor fail."""

    def broadcast(self, slot: str, text: str) -> None:
        """Take a message of which only the newest counts; must neither wait nor fail."""

    def mark(self, space: str, text: str) -> None:
        """Take word of how far the client holds the answers once it has read this; must neither wait nor fail."""


@dataclass(eq=False)
class Subscription:
    """One connection's interest in one query's answer.

    Attributes
    ----------
    live : bool
        The client holds an answer that later changes carry on.
    catching_up : bool
        It is still being told what it missed; what is new comes after that.
    held : int
        The batch of the present epoch up to which the client held the answer when it had come, and caught up.
    waiting : bool
        A snapshot has been asked for.
    resync : bool
        That snapshot follows a loss.
    asked : float
        When the snapshot was last asked for, on the hub's clock.
    patience_s : float
        After how long it is asked for again.
    sent_before : ndarray of int64, shape (regions,)
        How many tuples each region had sent for the query when the subscription began.
    closed : bool
        Nothing may be sent any more.
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
        """Note that an answer could not be told, so that it begins anew with a snapshot, asked for after a while."""
        self.lose()
        self.waiting, self.resync, self.asked = True, True, time.monotonic()

    def lose(self) -> None:
        """Note that an answer was lost on its way, so that later changes carry nothing on."""
        self.live = self.catching_up = self.waiting = False
        self.held = -1

    @property
    def change(self) -> "FrameOf":
        """The frame of the changes of a batch."""
        return FrameOf(CHANGE, self.query, self.format)


@dataclass(frozen=True)
class FrameOf:
    """Names a frame of a batch: connections that need the same one share its bytes."""

    kind: str
    query: int
    format: str
    resync: bool = False


def due(subscription: Subscription, number: int, snapshots: frozenset[int]) -> list[FrameOf]:
    """Return the frames that a subscription gets from a batch of a number with the snapshots of some queries."""
    goes_on = subscription.live and not subscription.catching_up and number > subscription.held
    frames = [subscription.change] if goes_on else []
    if subscription.waiting and subscription.query in snapshots:
        frames.append(FrameOf(SNAPSHOT, subscription.query, subscription.format, subscription.resync))
    return frames


@dataclass(frozen=True)
class Encoded:
    """The frames of a batch, those without changes left out; the frames that failed; and what failed, by query."""

    frames: dict[FrameOf, str | bytes] = field(default_factory=dict)
    lost: set[FrameOf] = field(default_factory=set)
    errors: dict[int, str] = field(default_factory=dict)


def encode(batch: Batch, wanted: Iterable[FrameOf], now_us: int, space: Space) -> Encoded:
    """Return the frames of a batch; what fails in one of them is its query's alone."""
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
        # Whatever an answer is made of, the others are told.
        except Exception as error:
            logger.exception("an answer of query %d could not be told", want.query)
            encoded.lost.add(want)
            encoded.errors[want.query] = f"the answer of batch {batch.number} could not be told: {error!s:.200}"
    return encoded


def _changes(batch, queries):
    """Return a function of a query that returns its net changes; where netting all fails, each is netted alone."""
    try:
        changes = batch.changes(queries) if queries else None
    except Exception:
        logger.exception("the changes of batch %d could not be netted together", batch.number)
        return lambda query: batch.changes([query])
    return lambda query: rows_of(changes, query)


def resumed(query: int, held: ResumePoint) -> str:
    """Return the word that an answer goes on from what the client holds."""
    return orjson.dumps({"type": RESUMED, "query": query, "epoch": held.epoch, "batch": held.batch}).decode()


def held_text(space: str, held: ResumePoint, behind: list[int]) -> str:
    """Return the word of how far a client holds the answers of its queries in a space, but those that are behind."""
    told = {"type": HELD, "space": space, "epoch": held.epoch, "batch": held.batch, "without": behind}
    return orjson.dumps(told).decode()


def _encoded(head: dict[str, Any], rows: pa.Table, form: str, space: Space, errors: dict[int, str]) -> str | bytes:
    if form == "arrow":
        return frame(head, rows)
    told, unread = json_rows(rows, space)
    if unread:
        errors.setdefault(head["query"], next(iter(unread.values())))
    return orjson.dumps(head | {"rows": told}).decode()

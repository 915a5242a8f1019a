"""Who gets which answer: subscriptions, and the frames that one batch means for them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson
import pyarrow as pa

from streaming.results import frame, json_rows
from streaming.spaces import Space
from webapp.hub.assembly import Batch, rows_of
from webapp.hub.shipping import Held

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
        The client holds an answer that the next batch's changes carry on.
    held : int
        The batch of the present epoch up to which the client held the answer when it came.
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
    held: int = -1
    waiting: bool = False
    resync: bool = False
    asked: float = 0.0
    patience_s: float = 2.0
    sent_before: np.ndarray | None = None
    closed: bool = False

    def lose(self) -> None:
        """Note that an answer was lost on its way, so that later changes carry nothing on."""
        self.live, self.waiting, self.held = False, False, -1


@dataclass(frozen=True)
class FrameOf:
    """Names a frame of a batch: connections that need the same one share its bytes."""

    kind: str
    query: int
    format: str
    resync: bool = False


def due(subscription: Subscription, number: int, snapshots: frozenset[int]) -> list[FrameOf]:
    """Return the frames that a subscription gets from a batch of a number with the snapshots of some queries."""
    query, form = subscription.query, subscription.format
    frames = [FrameOf(CHANGE, query, form)] if subscription.live and number > subscription.held else []
    if subscription.waiting and query in snapshots:
        frames.append(FrameOf(SNAPSHOT, query, form, subscription.resync))
    return frames


def encode(batch: Batch, wanted: Iterable[FrameOf], now_us: int, space: Space) -> dict[FrameOf, str | bytes]:
    """Return the frames of a batch; those without changes are left out."""
    wanted = list(wanted)
    changed = {w.query for w in wanted if w.kind == CHANGE}
    changes = batch.changes(changed) if changed else None
    snapshots = {w.query: batch.snapshot(w.query) for w in wanted if w.kind == SNAPSHOT}
    lag_ms = round((now_us - batch.newest_us) / 1000) if batch.newest_us else None
    frames = {}
    for want in wanted:
        rows = snapshots[want.query] if want.kind == SNAPSHOT else rows_of(changes, want.query)
        if want.kind == SNAPSHOT or rows.num_rows:
            head = {"type": want.kind, "query": want.query, "epoch": batch.epoch, "batch": batch.number}
            head |= {"lag_ms": lag_ms}
            head |= {"resync": want.resync} if want.kind == SNAPSHOT else {}
            frames[want] = _encoded(head, rows, want.format, space)
    return frames


def resumed(subscription: Subscription, epoch: str) -> str:
    """Return the word that an answer goes on from what the client holds."""
    told = {"type": RESUMED, "query": subscription.query, "epoch": epoch, "batch": subscription.held}
    return orjson.dumps(told).decode()


def held_text(space: str, held: Held, behind: list[int]) -> str:
    """Return the word of how far a client holds the answers of its queries in a space, but those that are behind."""
    told = {"type": HELD, "space": space, "epoch": held.epoch, "batch": held.batch, "without": behind}
    return orjson.dumps(told).decode()


def _encoded(head: dict[str, Any], rows: pa.Table, form: str, space: Space) -> str | bytes:
    if form == "arrow":
        return frame(head, rows)
    return orjson.dumps(head | {"rows": json_rows(rows, space)}).decode()

"""Subscriptions to answers, and the frames of a batch that each of them gets."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Protocol

import numpy as np
import orjson

from webapp.hub.shipping import ResumePoint

FORMATS = ("json", "arrow")
SNAPSHOT, CHANGE, CHANGES = "answer.snapshot", "answer.change", "answer.changes"
RESUMED, HELD = "answer.resumed", "answer.held"
# A user who gets at most this many rows of a batch gets them before the rows of the other users are encoded.
LIGHT = 2_000


class Subscriber(Protocol):
    """A connection, as the hub sees it."""

    @property
    def owner(self) -> Hashable:
        """For whom it asks: what one asks for, others do not wait for."""

    def deliver(self, subscription: "AnswerSubscription", frame: str | bytes) -> None:
        """Take an answer. It must not wait or fail."""

    def deliver_joined(self, subscriptions: Sequence["AnswerSubscription"], frame: str | bytes) -> None:
        """Take the changes of several answers. It must not wait or fail."""

    def broadcast(self, slot: str, text: str) -> None:
        """Take a message that replaces an unsent one of the same slot. It must not wait or fail."""

    def report(self, slot: str, text: str) -> None:
        """Take a regular report, which may wait until the next one. It must not wait or fail."""

    def mark(self, space: str, text: str) -> None:
        """Take a text that says up to which batch the client has all changes. It must not wait or fail."""

    def when_sent(self, tell: Callable[[], None]) -> None:
        """Call a function once the answer that was delivered last is sent; never if it is dropped."""

    def waiting(self) -> tuple[int, float]:
        """Return how many bytes of answers wait for the client, and for how many seconds the oldest frame does."""


@dataclass(eq=False)
class AnswerSubscription:
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
    joined : bool
        The changes of a batch come in one frame with those of the connection's other answers.
    once : bool
        What the answer tells no snapshot brings back.
    before : int
        The batch before the one of which something was delivered last.
    behind : int or None
        Where the client did not read, and the answer is told once: the last batch whose changes it was sent.
    missed : int
        How many entries and exits of such an answer the client will not get.
    uncounted : bool
        Whether there may be more of them, which could not be counted.
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
    joined: bool = False
    once: bool = False
    before: int = -1
    behind: int | None = None
    missed: int = 0
    uncounted: bool = False

    def put_off(self) -> None:
        """Mark an answer that could not be encoded as lost, and a snapshot as asked for."""
        self.lose()
        self.waiting = self.resync = True

    def lose(self) -> None:
        """Mark the answer as lost, so that no changes are sent until the next snapshot."""
        self.live = self.catching_up = self.waiting = False
        self.held, self.behind = -1, None

    def fall_behind(self, before: int) -> None:
        """Note that the client has no changes after a batch. Of an answer that is told once, it gets them later."""
        if self.once and (self.live or self.behind is not None):
            self.live = self.catching_up = self.waiting = False
            self.held, self.behind = -1, before if self.behind is None else min(before, self.behind)
        else:
            self.lose()

    @cached_property
    def change(self) -> "FrameOf":
        """The name of the frame with a batch's changes."""
        return FrameOf(CHANGE, self.query, self.format)

    @cached_property
    def joint(self) -> tuple[Subscriber, str]:
        """What the subscriptions have in common whose changes come in one frame."""
        return self.subscriber, self.format


class FrameOf(NamedTuple):
    """The name of a frame of a batch with one answer. Connections that need the same frame share its bytes."""

    kind: str
    query: int
    format: str
    resync: bool = False


class JoinedOf(NamedTuple):
    """The name of a frame with the changes of a batch in several answers, whose queries are in ascending order."""

    queries: tuple[int, ...]
    format: str


@dataclass
class Due:
    """What subscriptions get of a batch.

    Parameters
    ----------
    number : int
        Of the batch.

    Attributes
    ----------
    alone : dict of AnswerSubscription to list of FrameOf
        The frames of one answer, in their order.
    joined : dict of (Subscriber, str) to list of AnswerSubscription
        The answers whose changes come in one frame, by connection and format; in the order in which they were added.
    """

    number: int
    alone: defaultdict[AnswerSubscription, list[FrameOf]] = field(default_factory=lambda: defaultdict(list))
    joined: defaultdict[tuple[Subscriber, str], list[AnswerSubscription]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def add_change(self, subscription: AnswerSubscription) -> None:
        """Add the changes of an answer. Those that are joined must be added in the order of their queries."""
        if subscription.joined:
            subscription.before = self.number - 1
            self.joined[subscription.joint].append(subscription)
        else:
            self.add_alone(subscription)

    def add_alone(self, subscription: AnswerSubscription) -> None:
        """Add the changes of an answer in a frame of its own."""
        subscription.before = self.number - 1
        self.alone[subscription].append(subscription.change)

    def light_first(self, rows_of: Callable[[int], int]) -> "Iterator[Due]":
        """Yield the frames of all users who get at most `LIGHT` rows, then the frames of the others; no empty part.

        Parameters
        ----------
        rows_of : function of a query
            Returns how many rows its frames have.
        """
        rows: Counter[Hashable] = Counter()
        for one in chain(self.alone, *self.joined.values()):
            rows[one.subscriber.owner] += rows_of(one.query)
        parts = Due(self.number), Due(self.number)
        for one, frames in self.alone.items():
            parts[rows[one.subscriber.owner] > LIGHT].alone[one] = frames
        for joint, group in self.joined.items():
            parts[rows[joint[0].owner] > LIGHT].joined[joint] = group
        yield from (part for part in parts if part.alone or part.joined)


def all_due(subscriptions: Iterable[AnswerSubscription], number: int, snapshots: frozenset[int]) -> Due:
    """Return what subscriptions get of batch `number`, which has the snapshots of some queries."""
    due = Due(number)
    for one in subscriptions:
        if one.live and number > one.held and not one.catching_up:
            due.add_change(one)
        if one.waiting and one.query in snapshots:
            one.before = number - 1
            due.alone[one].append(FrameOf(SNAPSHOT, one.query, one.format, one.resync))
    return due


def resumed(query: int, held: ResumePoint) -> str:
    """Return the message ``answer.resumed``: the answer continues after the batch that the client holds."""
    return orjson.dumps({"type": RESUMED, "query": query, "epoch": held.epoch, "batch": held.batch}).decode()


def held_text(space: str, held: ResumePoint, behind: list[int]) -> str:
    """Return the message ``answer.held``: the client has all changes up to batch `held`, except of queries `behind`."""
    told = {"type": HELD, "space": space, "epoch": held.epoch, "batch": held.batch, "without": behind}
    return orjson.dumps(told).decode()

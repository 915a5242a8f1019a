"""Sessions of replays: child processes that play answers, each as far as it was asked; the side of who asks."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from streaming.children import Child
from streaming.errors import LookoutError
from streaming.results import read_frame


class InvalidReplay(LookoutError):
    """A replay that cannot be made; the message says the rule and the value."""


@dataclass(frozen=True)
class ReplayPlan:
    """What a session plays.

    Parameters
    ----------
    queries : tuple of int
        Whose answers are told.
    given : dict
        The JSON documents of the plans that were asked for, by number (as text).
    plans : dict
        Those that are played, and of these also the plans of the queries that rules name.
    refused : dict
        By the numbers of further queries (as text), why they are not played.
    from_us, end_us : int
        The span, microseconds since 1970 UTC.
    ttl_s : dict
        The times to live of the streams, in seconds, or None.
    layers : dict
        The versions of joined layers.
    space : dict
        The document of the space.
    history, layers_folder : str
        The folders of stored elements and layers.
    """

    queries: tuple[int, ...]
    given: dict[str, Any]
    plans: dict[str, Any]
    refused: dict[str, str]
    from_us: int
    end_us: int
    ttl_s: dict[str, float | None] = field(default_factory=dict)
    layers: dict[str, int] = field(default_factory=dict)
    space: dict[str, Any] = field(default_factory=dict)
    history: str = ""
    layers_folder: str = ""


class Session:
    """One child process.

    Parameters
    ----------
    played : ReplayPlan
    memory_bytes : int
        The memory that the process may have; see `confined.confine`.

    Attributes
    ----------
    until_us : int
        Up to when pages were told: the next one begins here.
    used_s : float
        When it was last asked, by `time.monotonic`.
    """

    def __init__(self, played: ReplayPlan, memory_bytes: int) -> None:
        self.played, self.until_us, self.used_s = played, played.from_us, time.monotonic()
        self.lock = threading.RLock()
        self._child = Child("streaming.replay", str(memory_bytes))
        self._write(asdict(played))

    def page(self, to_us: int, rows: int, seconds: float, patience_s: float) -> bytes:
        """Return the next page as a binary frame.

        Raises
        ------
        InvalidReplay
            When what is asked cannot be played, or the process ends or does not answer; the session has then ended.
        """
        with self.lock:
            answer = self._asked({"to_us": to_us, "rows": rows, "seconds": seconds}, patience_s)
            head, _ = read_frame(answer)
            self.until_us = head["until_us"]
            return answer

    def scene(self, at_us: int, patience_s: float) -> bytes:
        """Return the answers at a time as a page that begins and ends then, of queries that need nothing before it.

        The next page is the same as without it.

        Raises
        ------
        InvalidReplay
            As `page` does.
        """
        with self.lock:
            return self._asked({"scene_us": at_us}, patience_s)

    def _asked(self, words: object, patience_s: float) -> bytes:
        self._write(words)
        answer = self._answer(time.monotonic() + patience_s)
        if answer[:1] == b"{":
            self.end()
            raise InvalidReplay.of_document(orjson.loads(answer)["error"])
        self.used_s = time.monotonic()
        return answer

    @property
    def busy(self) -> bool:
        """Whether another thread waits for a page."""
        if free := self.lock.acquire(blocking=False):
            self.lock.release()
        return not free

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._child.ended

    def end(self) -> None:
        """End the process at once, also while another thread waits for a page; nothing happens if it has ended."""
        self._child.kill()
        with self.lock:  # that thread hears of it, and leaves
            self._child.close()

    def _write(self, words: object) -> None:
        try:
            self._child.write(orjson.dumps(words) + b"\n")
        except (BrokenPipeError, ValueError):
            raise InvalidReplay("a replay must be asked while it goes on; this one has ended") from None

    def _answer(self, deadline_s: float) -> bytes:
        try:
            return self._child.read_frame(deadline_s)
        except TimeoutError:
            self.end()
            raise InvalidReplay(
                "a page of answers must come in time: show fewer queries; this one takes too long"
            ) from None
        except EOFError:
            code = self._child.code()
            self.end()
            raise InvalidReplay(
                "a replay must come to its end; this one ended with code %(child)s", child=code
            ) from None


class Sessions:
    """The sessions of a web process.

    Parameters
    ----------
    most : int
        How many there may be; beyond that, the one that was not asked for longest ends.
    idle_s : float
        After so long without a question, a session ends.
    memory_bytes : int
        The memory of each.
    """

    def __init__(self, most: int, idle_s: float, memory_bytes: int) -> None:
        self.most, self.idle_s, self.memory_bytes = most, idle_s, memory_bytes
        self._open: dict[Any, Session] = {}
        self._lock, self._looking = threading.Lock(), False

    def of(
        self, name: Any, from_us: int, alike: Callable[[ReplayPlan], bool], played: Callable[[], ReplayPlan]
    ) -> Session:
        """Return the session of a name that goes on from a time, or a new one.

        Parameters
        ----------
        name : hashable
        from_us : int
        alike : callable
            Tells whether what a session plays is what is asked now.
        played : callable
            Returns what a new session plays.
        """
        with self._lock:
            self._sweep()
            session = self._open.get(name)
            if session is None or session.until_us != from_us or not alike(session.played):
                self._end(name)
                while len(self._open) >= self.most:
                    self._end(min(self._open, key=lambda other: self._open[other].used_s))
                session = self._open[name] = Session(played(), self.memory_bytes)
                self._look_later()
            return session

    def leave(self, name: Any, from_us: int) -> None:
        """End the session of a name that makes a page which does not begin at a time: nobody waits for it any more."""
        with self._lock:
            session = self._open.get(name)
            if session and session.until_us != from_us and session.busy:
                self._end(name)

    def forget(self, name: Any) -> None:
        """End a session, if it is there."""
        with self._lock:
            self._end(name)

    def end(self) -> None:
        """End all sessions."""
        with self._lock:
            for name in list(self._open):
                self._end(name)

    def _sweep(self) -> None:
        now_s = time.monotonic()
        for name in [name for name, one in self._open.items() if now_s - one.used_s > self.idle_s]:
            self._end(name)

    def _look_later(self) -> None:
        """End idle sessions later, once for all."""
        if not self._looking:
            self._looking, timer = True, threading.Timer(self.idle_s, self._look)
            timer.daemon = True
            timer.start()

    def _look(self) -> None:
        with self._lock:
            self._looking = False
            self._sweep()
            if self._open:
                self._look_later()

    def _end(self, name: Any) -> None:
        if (session := self._open.pop(name, None)) is not None:
            session.end()

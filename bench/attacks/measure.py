"""Measure one attack: a Lookout of its own, ships, another user, and then the attackers."""

import contextlib
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

from bench.attacks.attacks import ATTACKS, Attack
from bench.attacks.memory import Memory, grown_most
from bench.attacks.outcome import Outcome, Second, ages_of, settled_s
from bench.attacks.prepare import OTHERS_PLANS, SHIPS, TUGS
from bench.live import StackFailed
from bench.scenarios import COUNTRY
from bench.stack import NOWHERE, Stack, child, run, said, told

# What is measured before an attack and after it; before, all that was started has come to rest.
AROUND_S, SETTLE_S = 30.0, 10.0
# Of each of the two streams.
RATE = 300


class Attacked(Stack):
    """A Lookout that is attacked: a user has as many connections as usual, but all users come from one address."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        del self.environment["LOOKOUT_USER_CONNECTIONS"]

    def furnish(self, recording: Path | None) -> None:
        """Make the database, before the start, with a stream of a recording if there is one."""
        feed = ""
        if recording is not None:
            (self.home / "feeds").mkdir(parents=True)
            feed = shutil.copy(recording, self.home / "feeds")
        environment = self.environment | {"LOOKOUT_REDIS_URL": NOWHERE, "LOOKOUT_LOG_URL": ""}
        self.made = run(environment, "bench.attacks.prepare", "make", "--recording", str(feed))
        self._queries = len(OTHERS_PLANS)

    def replay(self, what: str) -> None:
        """Replay the recording ``once`` or in a ``loop``, or ``stop``."""
        run(self.environment, "bench.attacks.prepare", what)


class Watched:
    """What the process of the other user tells, read in a thread of its own, as a context manager."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.seconds: list[Second] = []
        self._process = process
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._process.kill()
        self._thread.join()

    def _read(self):
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(json.JSONDecodeError):  # the last one is cut when the process ends
                self.seconds.append(json.loads(line))

    def between(self, began_s: float, ended_s: float) -> Sequence[Second]:
        """Return what was told of the seconds that lie between two times."""
        return [second for second in list(self.seconds) if began_s <= second["at_s"] - 1 and second["at_s"] <= ended_s]


def measure(name: str, seconds: float, around_s: float, recording: Path | None) -> Outcome:
    """Attack a Lookout that is started for it, and return what the other user noticed."""
    attack = ATTACKS[name]
    with contextlib.ExitStack() as started:
        try:
            stack = started.enter_context(_running(recording))
            return _measured(name, attack, stack, seconds, around_s)
        except (StackFailed, OSError) as error:
            return Outcome(name, failed=str(error)[-2_000:] or type(error).__name__)


@contextlib.contextmanager
def _running(recording: Path | None) -> Iterator[Attacked]:
    with tempfile.TemporaryDirectory(prefix="lookout-attacked-", ignore_cleanup_errors=True) as folder:
        stack = Attacked(Path(folder))
        stack.furnish(recording)
        try:
            stack.start()
            yield stack
        finally:
            stack.end()


def _measured(name: str, attack: Attack, stack: Attacked, seconds: float, around_s: float) -> Outcome:
    streams = [option for stream in (SHIPS, TUGS) for option in ("--stream", stream)]
    size = ("--rate", str(2 * RATE), "--objects", str(attack.ships), "--area", *map(str, COUNTRY))
    queries = [str(query) for query in stack.made["queries"]]
    other = ("bench.attacks.watcher", stack.socket_url, stack.made["token"], "--queries", *queries)
    with child("bench.load", stack.redis_url, *streams, *size) as load:
        said(load, "filled")
        with child(*other) as process, Memory(stack.home) as memory:
            said(process, "measuring")
            with Watched(process) as watched:
                time.sleep(SETTLE_S + around_s)
                began_s = time.time()
                tally = _attacked(name, attack, stack, seconds)
                ended_s = time.time()
                time.sleep(around_s)
                return _outcome(name, watched, memory, (began_s, ended_s, around_s), tally)


def _attacked(name: str, attack: Attack, stack: Attacked, seconds: float) -> dict[str, int]:
    """Let the attackers attack; return what they counted."""
    made = stack.made
    who = {"socket_url": stack.socket_url, "base_url": stack.base_url}
    who |= {what: made[what] for what in ("accounts", "fields", "queries")}
    if attack.replay:
        stack.replay(attack.replay)
    with child("bench.attacks.attacker", name, "--seconds", str(seconds)) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(who) + "\n")
        process.stdin.flush()
        tally = told(process)
    if attack.replay:
        stack.replay("stop")
    return tally


def _outcome(
    name: str, watched: Watched, memory: Memory, times: tuple[float, float, float], tally: dict[str, int]
) -> Outcome:
    began_s, ended_s, around_s = times
    parts = [(began_s - around_s, began_s), (began_s, ended_s), (ended_s, ended_s + around_s)]
    before, during, after = (watched.between(*part) for part in parts)
    calm = ages_of(before)
    last: dict[str, Any] = dict(watched.seconds[-1]) if watched.seconds else {}
    return Outcome(
        name,
        calm,
        ages_of(during),
        ages_of(after),
        settled_s(after, ended_s, calm),
        *grown_most(memory.samples, began_s),
        tally,
        resyncs=last.get("resyncs", 0),
        connections=last.get("connections", 0),
    )

"""Run the whole of Lookout, ``manage.py live``, in its own state folder, for the benchmark and for the tests."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import redis

from bench.ports import free_port
from bench.processes import processes
from streaming.keys import HEALTH_KEY
from streaming.logs import Log
from streaming.settings import EngineSettings
from webapp.live import sessions

ROOT = Path(__file__).parents[1]
# Long enough that no wait for a condition fails on a busy machine. How fast something must be is asserted separately.
PATIENCE_S = 600
# An engine that stands by says so every second; after this silence, none stands by.
SILENT_US = 5_000_000
FOREIGN = ("LOOKOUT_REDIS_URL", "REDIS_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")


class StackFailed(Exception):
    """A process, or the whole stack, ended or took too long; the message ends with its output."""


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str], timeout_s: float = PATIENCE_S) -> Any:
    """Wait until a condition holds and return its value.

    Raises
    ------
    StackFailed
        After `timeout_s`; the message says what was waited for.
    """
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline_s:
            raise StackFailed(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)
    return found


class Live:
    """A Lookout that runs from `start` to `end`.

    Parameters
    ----------
    folder : Path
        An empty folder, in which it keeps everything.
    demo : bool
        Whether it has the demonstration's streams.
    standby : bool
        Whether it has a second engine, which takes processor time when it starts.

    Attributes
    ----------
    home : Path
        The state folder.
    port : int
        Of the web server.
    base_url : str
    environment : dict
        Of its processes.
    client : redis.Redis
    log : Log
    """

    def __init__(self, folder: Path, demo: bool = False, standby: bool = False) -> None:
        self.home, self.output, self.port = folder / "home", folder / "output", free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environment = {name: value for name, value in os.environ.items() if name not in FOREIGN} | {
            "LOOKOUT_HOME": str(self.home),
            "LOOKOUT_PORT": str(self.port),
            "LOOKOUT_DEMO": str(demo).lower(),
            "LOOKOUT_STANDBY": str(standby).lower(),
            # All clients of a measurement come from this machine, and share some users.
            "LOOKOUT_USER_CONNECTIONS": "0",
            "LOOKOUT_ADDRESS_CONNECTIONS": "0",
        }

    def start(self) -> None:
        """Start everything, and return once pages answer and the engine has evaluated a batch."""
        # The guardian ends it if this process dies without doing so.
        self._guardian = subprocess.Popen(
            [sys.executable, "-P", sessions.__file__], stdin=subprocess.PIPE, start_new_session=True
        )
        assert self._guardian.stdin is not None  # it is a pipe
        with self.output.open("ab") as words:
            command = [sys.executable, "manage.py", "live"]
            self._live = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
                preexec_fn=sessions.guarded(self._guardian.stdin.fileno()),
            )
        wait_for(lambda: self.said("everything is up") or self._live.poll() is not None, self.words)
        if self._live.poll() is not None:
            raise StackFailed(self.words())
        self.client = redis.Redis.from_url(self.redis_url)
        self.log = Log(self.client, "earth", self.partitions, url=self.log_url)

    def interrupt(self) -> int:
        """End everything as Ctrl-C does, and return the exit code."""
        self._live.send_signal(signal.SIGINT)
        return self._live.wait(PATIENCE_S)

    def leave_nothing(self) -> None:
        """Kill every process that is left, whatever its state."""
        for process in [self._live, *self.processes()]:
            with contextlib.suppress(psutil.Error):
                process.kill()
        self._live.wait()
        self._guardian.communicate(b"%d\n" % -self._live.pid)
        wait_for(lambda: not self.processes(), "the end of all processes")

    def end(self) -> None:
        """End everything as Ctrl-C does, then kill what is left."""
        try:
            self.interrupt()
        finally:
            self.leave_nothing()

    def words(self) -> str:
        """Return what the supervisor has printed so far."""
        return self.output.read_text(errors="replace")

    def said(self, words: str) -> bool:
        """Tell whether the supervisor has printed something."""
        return words in self.words()

    @property
    def redis_url(self) -> str:
        """The address of Redis."""
        return (self.home / "redis" / "url").read_text().strip()

    @property
    def log_url(self) -> str:
        """The address of Kafka; empty if the logs are in Redis."""
        return self.environment.get("LOOKOUT_LOG_URL", "")

    @property
    def partitions(self) -> int:
        """Of the ingest log."""
        return int(self.environment.get("LOOKOUT_PARTITIONS", EngineSettings.partitions))

    @property
    def socket_url(self) -> str:
        """The address of the websocket."""
        return f"ws://127.0.0.1:{self.port}/ws/monitor/"

    def report(self) -> dict[bytes, bytes]:
        """Return the engine's report."""
        return self.client.hgetall(self.log.names.engine)

    def standing_by(self) -> bool:
        """Tell whether a second engine can take over at once."""
        return time.time_ns() // 1000 - int(self.report().get(b"standby_us", 0)) < SILENT_US

    def health(self, stream: str) -> dict[str, Any]:
        """Return the gateway's counters of a stream; before the first report only `state`, which is empty then."""
        return {"state": ""} | json.loads(self.client.hget(HEALTH_KEY, stream) or "{}")

    def processes(self) -> list[psutil.Process]:
        """Return every living process, at whatever depth, that was started with this state folder."""
        return list(processes(self.home))

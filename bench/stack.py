"""A real stack to put under load: ``manage.py live`` in a state folder of its own."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import redis

from bench.processes import processes
from streaming.logs import HEALTH_KEY, LogNames

ROOT = Path(__file__).parents[1]
UP_S, END_S = 180, 40
FOREIGN = ("LOOKOUT_REDIS_URL", "REDIS_URL", "DATABASE_URL")
# No Redis is up while the database is made, and one that happens to run on this machine is not ours.
NOWHERE = "redis://127.0.0.1:1/0"


class StackFailed(Exception):
    """A process of the bench, or the stack, ended or took too long; the message ends with what it said."""


def wait_for(condition: Callable[[], Any], what: Callable[[], str], timeout_s: float) -> Any:
    """Wait until a condition holds and return its value."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        if time.monotonic() > deadline_s:
            raise StackFailed(f"not within {timeout_s:g} s: {what()}")
        time.sleep(0.1)
    return found


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stack:
    """A Lookout that runs from `start` to `end`.

    Parameters
    ----------
    folder : Path
        Empty; everything that it keeps is in there.
    demo : bool
        With the demonstration's streams.

    Attributes
    ----------
    home : Path
    port, wire_port : int
        Of the web server, and for the gateway's TCP listener.
    made : dict
        What `bench.prepare` made: `token` and `queries`.
    """

    def __init__(self, folder: Path, demo: bool = False) -> None:
        self.home, self.output = folder / "home", folder / "output"
        self.port, self.wire_port = free_port(), free_port()
        clean = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        self.environment = clean | {
            "LOOKOUT_HOME": str(self.home),
            "LOOKOUT_PORT": str(self.port),
            "LOOKOUT_DEMO": str(demo).lower(),
        }
        self.made: dict[str, Any] = {}
        self._queries = 0

    def prepare(self, queries: int, wire: bool = False) -> None:
        """Make the database, before the start."""
        self._queries, port = queries, self.wire_port if wire else 0
        environment = self.environment | {"LOOKOUT_REDIS_URL": NOWHERE}
        self.made = run(environment, "bench.prepare", "make", "--queries", str(queries), "--wire-port", str(port))

    def start(self) -> None:
        """Start everything, and return once the engine has evaluated a batch and knows all queries."""
        with self.output.open("wb") as words:
            command = [sys.executable, "manage.py", "live"]
            self._live = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
        wait_for(lambda: "everything is up" in self.words() or self._live.poll() is not None, self.words, UP_S)
        if self._live.poll() is not None:
            raise StackFailed(self.words())
        self.client = redis.Redis.from_url(self.redis_url)
        wait_for(lambda: self.client.hexists(LogNames("earth").engine, "batch"), self.words, UP_S)
        if self.made:
            running = run(self.environment, "bench.prepare", "register")["running"]
            if running != self._queries:
                raise StackFailed(f"the engine was to run {self._queries} queries; got {running}")

    def end(self) -> None:
        """End everything, whatever state it is in."""
        self._live.send_signal(signal.SIGINT)
        try:
            self._live.wait(END_S)
        finally:
            for process in [self._live, *processes(self.home)]:
                with contextlib.suppress(Exception):
                    process.kill()

    def words(self) -> str:
        """Return what the supervisor has said."""
        return self.output.read_text(errors="replace")

    @property
    def redis_url(self) -> str:
        """The address of the logs."""
        return (self.home / "redis" / "url").read_text().strip()

    @property
    def address(self) -> str:
        """The address of the pages."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket_url(self) -> str:
        """The address of the websocket."""
        return f"ws://127.0.0.1:{self.port}/ws/monitor/"

    def login_link(self) -> str:
        """Return a new address that logs the watcher in, once."""
        return self.address + run(self.environment, "bench.prepare", "login")["login"]

    def health(self, stream: str) -> dict[str, Any]:
        """Return the gateway's counters of a stream; empty before the first."""
        return json.loads(self.client.hget(HEALTH_KEY, stream) or "{}")


def run(environment: Mapping[str, str], module: str, *arguments: str) -> dict[str, Any]:
    """Run a module in an environment and return the JSON that it prints."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise StackFailed(f"{module} {arguments[0]}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def running(queries: int | None, wire: bool = False) -> Iterator[Stack]:
    """Give a stack with so many queries, or with the demonstration's streams where that is None; end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="lookout-bench-", ignore_cleanup_errors=True) as folder:
        stack = Stack(Path(folder), demo=queries is None)
        if queries is not None:
            stack.prepare(queries, wire)
        try:
            stack.start()
            yield stack
        finally:
            stack.end()


@contextlib.contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen]:
    """Give a module's process, with its output to read, and end it afterwards."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen, word: str) -> None:
    """Wait until a process prints a line.

    Raises
    ------
    StackFailed
        When it ends, or prints another one.
    """
    assert process.stdout is not None
    if (line := process.stdout.readline().strip()) != word:
        raise StackFailed(f"{process.args} was to say {word!r}; got {line!r}")

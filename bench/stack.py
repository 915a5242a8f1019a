"""A whole Lookout to put under load, and the processes that do so."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any

from bench.live import ROOT, Live, StackFailed
from bench.ports import free_port
from bench.scenarios import QUERIES_EACH

# While the database is made, the stack's Redis is not up, and one that happens to run on this machine is not ours.
NOWHERE = "redis://127.0.0.1:1/0"
# Long enough to fill an engine with ten million objects.
SAID_S = 600.0


class Stack(Live):
    """A Lookout with streams and queries for the benchmark; see `Live`.

    Attributes
    ----------
    wire_port : int
        The port of the gateway's TCP listener.
    made : dict
        What `bench.prepare` made: `token` and `queries`, and the same for each of the other `users`.
    """

    def __init__(self, folder: Path, demo: bool = False) -> None:
        super().__init__(folder, demo)
        self.wire_port = free_port()
        self.made: dict[str, Any] = {}
        self._queries = 0

    def prepare(self, queries: int, wire: bool = False, joins: str = "", each: int = QUERIES_EACH) -> None:
        """Make the database, before the start; if `joins` names a scenario, with its layer and its queries.

        `each` is how many queries a user has.
        """
        self._queries, port = queries, self.wire_port if wire else 0
        environment = self.environment | {"LOOKOUT_REDIS_URL": NOWHERE, "LOOKOUT_LOG_URL": ""}
        options = ("--queries", str(queries), "--wire-port", str(port), "--each", str(each))
        options += ("--joins", joins) if joins else ()
        self.made = run(environment, "bench.prepare", "make", *options)

    def start(self) -> None:
        """Start everything, and return once the engine has evaluated a batch and knows all queries."""
        super().start()
        if self.made:
            running = run(self.environment, "bench.prepare", "register")["running"]
            if running != self._queries:
                raise StackFailed(f"the engine was to run {self._queries} queries; got {running}")

    def login_link(self) -> str:
        """Return a new address that logs the watcher in, once."""
        return self.base_url + run(self.environment, "bench.prepare", "login")["login"]


def run(environment: Mapping[str, str], module: str, *arguments: str) -> dict[str, Any]:
    """Run a module in an environment and return the JSON that it prints on its last line.

    Raises
    ------
    StackFailed
        When the module fails.
    """
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise StackFailed(f"{module} {arguments[0]}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def running(
    queries: int | None,
    wire: bool = False,
    joins: str = "",
    each: int = QUERIES_EACH,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """Start a stack with `queries` queries, or with the demonstration's streams if that is None; end it afterwards.

    If `joins` names a scenario of joins, the queries are those of that scenario. Each user has `each` of them.
    `settings` are added to the environment.
    """
    with tempfile.TemporaryDirectory(prefix="lookout-bench-", ignore_cleanup_errors=True) as folder:
        stack = Stack(Path(folder), demo=queries is None)
        stack.environment |= settings or {}
        if queries is not None:
            stack.prepare(queries, wire, joins, each)
        try:
            stack.start()
            yield stack
        finally:
            stack.end()


@contextlib.contextmanager
def child(*arguments: str) -> Iterator[subprocess.Popen]:
    """Run a module as a process that can be written to and read from, and end it afterwards."""
    command = [sys.executable, "-m", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
        When it ends, prints another line, or takes too long.
    """
    if (line := _line(process)) != word:
        raise StackFailed(f"{_words(process)} was to say {word!r}; got {line!r}")


def told(process: subprocess.Popen) -> dict[str, Any]:
    """Wait until a process prints a JSON object, and return it.

    Raises
    ------
    StackFailed
        When it ends before, or takes too long.
    """
    if not (line := _line(process)):
        raise StackFailed(f"{_words(process)} ended, or took too long, before it told its figures")
    return json.loads(line)


def _line(process):
    """Return the next line of a process, which is killed if it takes too long."""
    assert process.stdout is not None
    patience = Timer(patience_s(process.args), process.kill)
    patience.start()
    try:
        return process.stdout.readline().strip()
    finally:
        patience.cancel()


def patience_s(command: Sequence[str]) -> float:
    """Return how long to wait for a line of a process: so much longer than it was asked to measure, if it was."""
    return SAID_S + (float(command[command.index("--seconds") + 1]) if "--seconds" in command else 0.0)


def _words(process):
    """Return the module that a process runs; its arguments may be thousands of numbers, and a secret."""
    return process.args[2]

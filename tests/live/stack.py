"""One Lookout: ``manage.py live`` in a state folder of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import redis

from streaming.logs import HEALTH_KEY, Log
from tests.live.monitor import Monitor
from tests.ports import free_port
from webapp.live import sessions

ROOT = Path(__file__).parents[2]
UP_S, END_S = 150, 30
# Words of the command lines of what the supervisor starts; the engine starts `java` itself.
PROGRAMS = {
    "engine": "streaming.engine",
    "gateway": "streaming.gateway",
    "web": "uvicorn",
    "worker": "worker",
    "beat": "beat",
    "redis": "redis-server",
    "java": "java",
}
CONSOLE = "from tests.live.console import serve; serve()"
FOREIGN = ("LOOKOUT_REDIS_URL", "REDIS_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str], timeout_s: float = 30) -> Any:
    """Wait until a condition holds and return its value; fail with what was waited for."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f"not in {timeout_s} s: {what if isinstance(what, str) else what()}"
        time.sleep(0.05)
    return found


class Stack:
    """A running Lookout.

    Parameters
    ----------
    folder : Path
        Empty; the state folder is made in it.

    Attributes
    ----------
    base_url : str
    client : redis.Redis
    log : Log
    start_s : float
        How long the start took.
    """

    def __init__(self, folder: Path) -> None:
        self.home, self.output, self.port = folder / "home", folder / "output", free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.environment = {name: value for name, value in os.environ.items() if name not in FOREIGN} | {
            "LOOKOUT_HOME": str(self.home),
            "LOOKOUT_PORT": str(self.port),
            "LOOKOUT_DEMO": "false",
        }
        self._live = self._console = None

    def start(self) -> None:
        """Start, and wait until pages answer and the engine has evaluated a batch."""
        began_s = time.monotonic()
        with self.output.open("ab") as words:
            self._live = subprocess.Popen(
                [sys.executable, "manage.py", "live"],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                start_new_session=True,
            )
        # Ends it should this process die without doing so.
        self._guardian = subprocess.Popen(
            [sys.executable, "-P", sessions.__file__], stdin=subprocess.PIPE, start_new_session=True
        )
        self._guardian.stdin.write(b"%d\n" % self._live.pid)
        self._guardian.stdin.flush()
        wait_for(lambda: self.said("everything is up") or self._live.poll() is not None, self.words, UP_S)
        assert self._live.poll() is None, self.words()
        with urllib.request.urlopen(f"{self.base_url}/healthz", timeout=10) as answer:
            assert answer.status == 200
        self.client = redis.Redis.from_url((self.home / "redis" / "url").read_text().strip())
        self.log = Log(self.client, "earth", 2)
        wait_for(lambda: b"batch" in self.report(), self.words, UP_S)
        self.start_s = time.monotonic() - began_s
        self._console = subprocess.Popen(
            [sys.executable, "manage.py", "shell", "--no-imports", "-c", CONSOLE],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def end(self) -> None:
        """End by Ctrl-C, and make sure that nothing is left."""
        if self._console:
            self._console.stdin.close()
            self._console.wait(10)
            self._console.stdout.close()
            self.client.close()
        try:
            self._live.send_signal(signal.SIGINT)
            code = self._live.wait(END_S)
            assert code == 0, self.words()
            assert self.said("nothing is left running"), self.words()
            assert not self.processes()
        finally:
            if self._live.poll() is None:
                self._live.kill()
                self._live.wait()
            self._guardian.communicate(b"%d\n" % -self._live.pid)
            wait_for(lambda: not self.processes(), "the end of all processes")

    def words(self) -> str:
        """Return what the supervisor has said so far."""
        return self.output.read_text()

    def said(self, words: str) -> bool:
        """Tell whether the supervisor has said something."""
        return words in self.words()

    def text_of(self, program: str) -> str:
        """Return the log of a program."""
        return (self.home / "log" / f"{program}.log").read_text(errors="replace")

    # Users, streams and queries.

    def run(self, command: str, *arguments: Any) -> Any:
        """Run a command of `tests.live.console`."""
        self._console.stdin.write(json.dumps([command, *arguments]) + "\n")
        self._console.stdin.flush()
        answer = json.loads(self._console.stdout.readline())
        assert "answer" in answer, answer
        return answer["answer"]

    def token(self, user: str, staff: bool = False) -> str:
        """Return a new API token of a user, who is made where there is none."""
        return self.run("token", user, staff)

    def login_link(self, user: str) -> str:
        """Return an address that logs a user in, once."""
        return self.base_url + self.run("login_path", user)

    def add_stream(self, name: str, transport: dict, decoder: dict, **fields: Any) -> None:
        """Save a stream, as the admin does."""
        self.run("add_stream", {"name": name, "transport": transport, "decoder": decoder, **fields})

    def enable_stream(self, name: str, enabled: bool = True) -> None:
        """Switch a stream on or off, as the admin does."""
        self.run("enable_stream", name, enabled)

    def remove_stream(self, name: str) -> None:
        """Delete a stream, as the admin does."""
        self.run("remove_stream", name)

    def queries(self) -> dict[int, dict]:
        """Return how each saved query stands, by its number."""
        return {query["query"]: query for query in self.run("queries")}

    def monitor(self, user: str = "ann", form: str = "json") -> Monitor:
        """Return a client of the websocket for a user, to be entered with ``async with``."""
        return Monitor(f"ws://127.0.0.1:{self.port}/ws/monitor/", self.token(user), form)

    # What the programs say of themselves.

    def report(self) -> dict[bytes, bytes]:
        """Return the engine's report."""
        return self.client.hgetall(self.log.names.engine)

    def health(self, stream: str) -> dict[str, Any]:
        """Return the gateway's counters of a stream; empty before the first."""
        return json.loads(self.client.hget(HEALTH_KEY, stream) or "{}")

    # Processes.

    def processes(self) -> list[psutil.Process]:
        """Return every living process, at whatever depth, that was started with this state folder."""
        return [process for process in psutil.process_iter() if _home_of(process) == str(self.home)]

    def pids(self) -> dict[str, int]:
        """Return the number of the process of each of `PROGRAMS` that runs."""
        found = {}
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = {Path(word).name for word in process.cmdline()}
                found |= {name: process.pid for name, word in PROGRAMS.items() if word in words}
        return found

    def kill(self, program: str) -> int:
        """Kill a program as ``kill -9`` does and return the number of its process."""
        pid = self.pids()[program]
        os.kill(pid, signal.SIGKILL)
        return pid


def _home_of(process):
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get("LOOKOUT_HOME")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None

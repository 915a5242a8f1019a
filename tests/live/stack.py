"""One Lookout: ``manage.py live`` in a state folder of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import psutil

from bench.live import PATIENCE_S, ROOT, Live
from streaming.engine.lease import signed
from tests.live.monitor import Monitor
from tests.prepared import copy_database, prepared

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


class Stack(Live):
    """A running Lookout, with what the tests do to it; see `Live`."""

    _console = None

    def __init__(self, folder: Path, demo: bool = False, standby: bool = False) -> None:
        super().__init__(folder, demo, standby)
        # Tests wait for engines to stand by.
        self.environment["LOOKOUT_STANDBY_AFTER_S"] = "1"

    def start(self) -> None:
        """Start, and wait until pages answer and the engine has evaluated a batch."""
        self.home.mkdir(exist_ok=True)
        if not (self.home / "static").exists():
            (self.home / "static").symlink_to(prepared() / "static")
        copy_database(self.home)
        super().start()
        assert b"batch" in self.report()
        with urllib.request.urlopen(f"{self.base_url}/healthz", timeout=PATIENCE_S) as answer:
            assert answer.status == 200
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
            self._console.wait(PATIENCE_S)
            self._console.stdout.close()
            self.client.close()
        try:
            assert self.interrupt() == 0, self.words()
            assert self.said("nothing is left running"), self.words()
            assert not self.processes()
        finally:
            self.leave_nothing()

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

    def enable_filter(self, name: str) -> None:
        """Let queries use a user-defined filter, as the admin does."""
        self.run("enable_filter", name)

    def enable_stream(self, name: str, enabled: bool = True) -> None:
        """Switch a stream on or off, as the admin does."""
        self.run("enable_stream", name, enabled)

    def remove_stream(self, name: str) -> None:
        """Delete a stream, as the admin does."""
        self.run("remove_stream", name)

    def clear(self) -> None:
        """Delete all streams and queries, as the admin does."""
        self.run("clear")

    def cut_regions(self, count: int, space: str = "earth") -> None:
        """Cut a space into a grid of regions, as the admin does: what ran before may have split or cut it."""
        self.run("cut_regions", space, count)

    def queries(self) -> dict[int, dict]:
        """Return how each saved query stands, by its number."""
        return {query["query"]: query for query in self.run("queries")}

    def monitor(self, user: str = "ann", form: str = "json") -> Monitor:
        """Return a client of the websocket for a user, to be entered with ``async with``."""
        return Monitor(self.socket_url, self.token(user), form)

    # Processes.

    def pids(self) -> dict[str, int]:
        """Return the number of the process of each of `PROGRAMS` that runs; of the engines, the one that evaluates."""
        found, java = {}, signed(self.home / "spark" / "earth" / "lease")
        evaluating = {java.pid, java.ppid()} if java else set()
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = {Path(word).name for word in process.cmdline()}
                names = {name for name, word in PROGRAMS.items() if word in words}
                if process.pid not in evaluating:
                    names -= {"engine", "java"}
                found |= dict.fromkeys(names, process.pid)
        return found

    def kill_spark_worker(self) -> None:
        """Kill a Python process in which Spark runs the engine's tasks."""
        engine = psutil.Process(self.pids()["engine"])
        (server,) = [child for child in engine.children() if "streaming.forkserver" in child.cmdline()]
        workers = [worker for program in server.children() for worker in program.children()]
        max(workers, key=lambda worker: worker.cpu_times().user).kill()

    def kill_engines(self) -> None:
        """Kill the engine that evaluates and the one that stands by, and the Java of both."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.cmdline()[-1:] == ["streaming.engine"] or process.name() == "java":
                    process.kill()

    def kill(self, program: str) -> int:
        """Kill a program as ``kill -9`` does and return the number of its process."""
        pid = self.pids()[program]
        os.kill(pid, signal.SIGKILL)
        return pid

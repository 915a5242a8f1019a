"""The measured processes: a Redis, and the engine of the space with nine regions, in their own state folder."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import redis

from bench.live import FOREIGN, ROOT, StackFailed, wait_for
from bench.place.workload import REGIONS, SPACE
from bench.ports import free_port
from bench.processes import processes
from streaming.logs import Log
from streaming.spaces import Space, space_text
from webapp.live.programs import REDIS_SERVER

UP_S = 60.0


class EngineProcesses:
    """A Redis and an engine that run from `start` to `end`.

    Parameters
    ----------
    folder : Path
    space : Space
    regions : int

    Attributes
    ----------
    home : Path
    redis_url : str
    log : Log
    """

    def __init__(self, folder: Path, space: Space = SPACE, regions: int = REGIONS) -> None:
        port = free_port()
        self.home, self.redis_url = folder / "home", f"redis://127.0.0.1:{port}/0"
        options = {"port": port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "set-proc-title": "no"}
        self._redis = [REDIS_SERVER, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
        self._words = folder / "words"
        self._environment = {name: value for name, value in os.environ.items() if name not in FOREIGN} | {
            "LOOKOUT_HOME": str(self.home),
            "LOOKOUT_REDIS_URL": self.redis_url,
            "LOOKOUT_SPACE": space_text(space),
            "LOOKOUT_REGIONS": str(regions),
        }
        self.log = Log(redis.Redis.from_url(self.redis_url), space.name, 2)

    def start(self) -> None:
        """Start both, and return once the engine has evaluated a batch."""
        self._run(self._redis)
        wait_for(self._answers, self.words, UP_S)
        self._engine = self._run([sys.executable, "-m", "streaming.engine"])
        self.log.send("tick", now_us=1)
        wait_for(self._evaluated, self.words, UP_S)

    def _run(self, command):
        with self._words.open("ab") as words:
            return subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=words, stderr=words, start_new_session=True
            )

    def _answers(self):
        with contextlib.suppress(redis.ConnectionError):
            return self.log.client.ping()

    def _evaluated(self):
        self.check()
        return b"batch" in self.log.client.hgetall(self.log.names.engine)

    def check(self) -> None:
        """Raise StackFailed when the engine has ended."""
        if self._engine.poll() is not None:
            raise StackFailed(self.words())

    def words(self) -> str:
        """Return the last 4,000 characters that both have printed."""
        return self._words.read_text(errors="replace")[-4_000:]

    def end(self) -> None:
        """Kill every process, whatever its state."""
        for process in processes(self.home):
            process.kill()
        wait_for(lambda: not list(processes(self.home)), "the end of all processes")


@contextlib.contextmanager
def running() -> Iterator[EngineProcesses]:
    """Start an engine and its Redis; end them afterwards."""
    with tempfile.TemporaryDirectory(prefix="lookout-place-", ignore_cleanup_errors=True) as folder:
        servers = EngineProcesses(Path(folder))
        try:
            servers.start()
            yield servers
        finally:
            servers.end()

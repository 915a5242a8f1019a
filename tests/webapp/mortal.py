"""A Redis of one test module, which tests kill, stop and start again."""

import signal
import subprocess
from pathlib import Path

from bench.ports import free_port
from streaming.redis_client import patient_client
from webapp.live.programs import REDIS_SERVER


class MortalRedis:
    """A Redis that writes each command down before it replies.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client = patient_client(self.url)
        self.live()

    def live(self) -> None:
        """Start, and return once it answers."""
        place = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command = [REDIS_SERVER, *place, "--save", "", "--appendonly", "yes"]
        self._server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.client.ping()

    def die(self) -> None:
        """End as by ``kill -9``."""
        self._server.kill()
        self._server.wait()

    def freeze(self) -> None:
        """Answer no more, with all connections open."""
        self._server.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Answer again."""
        self._server.send_signal(signal.SIGCONT)

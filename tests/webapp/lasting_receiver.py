"""A receiver of webhooks in a process of its own, which tests kill: ``python -m tests.webapp.lasting_receiver``.

It writes down which messages it has taken, before it replies. So it honours idempotency keys also after it was killed.
"""

import argparse
import os
import subprocess
import sys
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

from bench.live import PATIENCE_S, ROOT, wait_for
from bench.ports import answers, free_port


class LastingReceiver:
    """The receiver; a context that ends it.

    Parameters
    ----------
    folder : Path
        Where it writes what it has taken: a line for each request, with the message's idempotency key.
    """

    def __init__(self, folder: Path) -> None:
        self.path, self.port = folder / "taken.txt", free_port()
        self.url = f"http://127.0.0.1:{self.port}/alarms"

    def __enter__(self) -> "LastingReceiver":
        self.live()
        return self

    def __exit__(self, *_) -> None:
        self.die()

    def live(self) -> None:
        """Start, and return once it listens."""
        command = [sys.executable, "-m", "tests.webapp.lasting_receiver", str(self.port), str(self.path)]
        self._process = subprocess.Popen(command, cwd=ROOT)
        wait_for(lambda: answers(self.port), "the receiver listens")

    def die(self) -> None:
        """End as by ``kill -9``."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def requests(self) -> Counter[str]:
        """Return how many requests came with each key, also after the message was taken."""
        return Counter(self.path.read_text().split()) if self.path.exists() else Counter()


def main() -> None:
    """Take messages until the process is killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("port", type=int)
    parser.add_argument("path", type=Path)
    asked = parser.parse_args()
    lock = Lock()
    with asked.path.open("a") as taken:

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    taken.write(self.headers["Idempotency-Key"] + "\n")
                    taken.flush()
                    os.fsync(taken.fileno())
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                """Write no log."""

        ThreadingHTTPServer(("127.0.0.1", asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()

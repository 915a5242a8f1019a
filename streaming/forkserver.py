"""Start Python programs by forking one that has imported everything already.

Spark starts five Python programs for an engine, and four of them fork a process for each task. What users ask a web
process for runs in child processes (`streaming.confined`). Each would import the same libraries: one to two seconds of
processor time. Instead, they are started by `forkclient`, which passes its command line, its environment, its folder
and its standard streams on to the server in this module. The server forks, and the child runs the module that is
wanted.

Only one thread of the server is active, and the server has no connections of its own. So a child inherits nothing that
is in use. The children share the memory that they only read.
"""

import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

logger = logging.getLogger(__name__)

SOCKET = "socket"
# Before a server that has ended starts again: twice as long each time.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0
MOST_BYTES = 1 << 16
STANDARD_STREAMS = 3
# Of the exit code that a program hears: 0 to 255, or the number of the signal that ended its module, negative.
CODE_BYTES = 2


class ForkServer:
    """A running fork server; leaving the context ends the server and all processes that it forked.

    If the server ends by itself or is killed, it is started again. Meanwhile, interpreters run what is asked for.

    Parameters
    ----------
    folder : Path
        The folder for the socket and the program; created if missing, readable by its owner alone. No other server
        has it.
    preloaded : sequence of str
        The modules that the server imports.
    *kept : int
        File descriptors that the server and all that it forks keep open.
    **environment : str
        Variables of the server: libraries read them as they are imported. What it forks has those of who asks.

    Attributes
    ----------
    python : Path
        A program that takes command lines as Python does.
    """

    def __init__(self, folder: Path, preloaded: Sequence[str], *kept: int, **environment: str) -> None:
        self._folder = folder
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._preloaded, self._kept, self._environment = preloaded, kept, environment
        self.python = self._folder / "python"
        client = Path(__file__).with_name("forkclient.py")
        # Without site-packages (-S), an interpreter starts within a few hundredths of a second.
        command = shlex.join([sys.executable, "-IS", str(client), str(self._folder)])
        self.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.python.chmod(0o700)
        self._lock, self._left = threading.Lock(), threading.Event()
        self._server = self._started()
        threading.Thread(target=self._keep, name="fork server", daemon=True).start()

    def _started(self) -> subprocess.Popen[bytes]:
        (self._folder / SOCKET).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            # By way of the folder's descriptor, since the path of a socket may have about 100 bytes at most.
            folder = os.open(self._folder, os.O_PATH)
            try:
                listener.bind(f"/proc/self/fd/{folder}/{SOCKET}")
            finally:
                os.close(folder)
            # It listens before the server has imported anything, so programs that connect early wait.
            listener.listen()
            # The server's standard input ends when this process ends, even if it is killed.
            return subprocess.Popen(
                [sys.executable, "-m", "streaming.forkserver", str(listener.fileno()), *self._preloaded],
                stdin=subprocess.PIPE,
                cwd=Path(__file__).parents[1],
                env=os.environ | self._environment,
                pass_fds=[listener.fileno(), *self._kept],
            )

    def _keep(self) -> None:
        """Start the server again whenever it has ended, until the context is left."""
        pause_s = FIRST_PAUSE_S
        while True:
            code = self._server.wait()
            if self._left.wait(pause_s):
                return
            logger.error(
                "the fork server ended with code %d; it starts again, and until then programs start slowly", code
            )
            with self._lock:
                if self._left.is_set():
                    return
                _close_input(self._server)
                self._server = self._started()
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left.set()
        _close_input(self._server)
        self._server.wait()


def _close_input(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.close()


def main(listener: socket.socket, preloaded: Sequence[str]) -> None:
    """Fork on request until standard input ends; in each child, run the requested module."""
    # Ctrl-C goes to all processes of a terminal, but who started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in preloaded:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    if arguments := _serve(listener):
        _run_module(*arguments)


def _serve(listener: socket.socket) -> list[str] | None:
    """Fork on request. Return the requested command line in each child, and None in the server at the end."""
    children: dict[socket.socket, int] = {}
    with listener, selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ, "end")
        selector.register(listener, selectors.EVENT_READ, "request")
        while True:
            for key, _ in selector.select():
                if key.data == "end":
                    for child in children.values():
                        os.kill(child, signal.SIGTERM)
                    return None
                if key.data == "request":
                    connection, _ = listener.accept()
                    wanted, streams = _request(connection)
                    if wanted is None:
                        connection.close()
                        continue
                    child = os.fork()
                    if not child:
                        connection.close()
                        for other in selector.get_map().values():
                            if other.data not in ("end", "request"):
                                _close(cast(int | socket.socket, other.fileobj))
                        _take(streams, wanted["environment"], wanted["folder"])
                        return wanted["arguments"]
                    for stream in streams:
                        os.close(stream)
                    children[connection] = child
                    selector.register(connection, selectors.EVENT_READ, connection)
                    selector.register(os.pidfd_open(child), selectors.EVENT_READ, connection)
                elif not isinstance(key.fileobj, int):  # the program that sent the request was killed
                    selector.unregister(key.data)
                    os.kill(children[key.data], signal.SIGTERM)
                else:  # a child has ended
                    selector.unregister(key.fileobj)
                    os.close(key.fileobj)
                    _, status = os.waitpid(children.pop(key.data), 0)
                    with contextlib.suppress(KeyError):
                        selector.unregister(key.data)
                    with contextlib.suppress(OSError):
                        key.data.send(os.waitstatus_to_exitcode(status).to_bytes(CODE_BYTES, "big", signed=True))
                    key.data.close()


def _close(file: int | socket.socket) -> None:
    if isinstance(file, int):
        os.close(file)
    else:
        file.close()


def _request(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return the request of a program and its standard streams; None and no streams if it died in the middle."""
    text, streams, _, _ = socket.recv_fds(connection, MOST_BYTES, STANDARD_STREAMS)
    while not text.endswith(b"\n"):
        more = connection.recv(MOST_BYTES)
        if not more:
            for stream in streams:
                os.close(stream)
            return None, []
        text += more
    return json.loads(text), streams


def _take(streams: list[int], environment: dict[str, str], folder: str) -> None:
    """Take over the standard streams, the environment and the folder of the program that sent the request."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)


def _run_module(_: str, module: str, *arguments: str) -> None:
    """Run ``-m module argument...`` as the Python interpreter does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path and path not in sys.path]
    sys.argv = [module, *arguments]
    # What is preloaded may have imported the module that now runs as the main one; neither needs the other's variables.
    warnings.filterwarnings("ignore", "'.*' found in sys.modules", RuntimeWarning)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])

"""Start Spark's Python processes by forking one that has imported everything already.

Spark starts five Python programs, and four of them fork a process for each task. Each process would import PySpark and
the servers for itself: a second of processor time each, most of an engine's start. Instead Spark is given
`spark_python` as its Python. That program passes its command line, its environment and its standard streams on to the
server in this module. The server forks, and the child runs the module that Spark wants.

The server has one thread that does anything and no connections of its own, so a child inherits nothing that is in use.
Memory that the children only read is shared.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

# The modules that Spark's Python processes run or import.
PRELOADED = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "streaming.engine.pipeline",
)
SOCKET = "socket"
MOST_BYTES = 1 << 16
STANDARD_STREAMS = 3


class ForkServer:
    """A running fork server; a context that ends it, and all that it forked.

    Parameters
    ----------
    folder : Path
        For the socket and the program; made if it is not there, and private.
    *kept : int
        File descriptors that the server and all that it forks keep open.

    Attributes
    ----------
    python : Path
        The program to give to Spark as its Python.
    """

    def __init__(self, folder: Path, *kept: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.python = folder / "python"
        client = Path(__file__).with_name("spark_python.py")
        # Without the packages of the site, an interpreter starts within some hundredths of a second.
        command = shlex.join([sys.executable, "-IS", str(client), str(folder)])
        self.python.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        self.python.chmod(0o700)
        # The tasks use every core already. Set here, Java has it, too, and passes it on to what is forked.
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        (folder / SOCKET).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            # The path of a socket may have about 100 bytes.
            with contextlib.chdir(folder):
                listener.bind(SOCKET)
            # It listens before the server has imported anything: who connects early waits.
            listener.listen()
            # The server's standard input ends when this process does, in whichever way.
            self._server = subprocess.Popen(
                [sys.executable, "-m", "streaming.engine.forkserver", str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno(), *kept],
            )

    def __enter__(self) -> "ForkServer":
        return self

    def __exit__(self, *_) -> None:
        self._server.stdin.close()
        self._server.wait()


def main(listener: socket.socket) -> None:
    """Fork on request until standard input ends; in each child, run what was asked for."""
    # Ctrl-C goes to all processes of a terminal, but the engine ends this one in its turn.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    if arguments := _serve(listener):
        _run_module(*arguments)


def _serve(listener):
    """Fork on request. Return None at the end, and in each child its command line."""
    children = {}
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
                                _close(other.fileobj)
                        _take(streams, wanted["environment"])
                        return wanted["arguments"]
                    for stream in streams:
                        os.close(stream)
                    children[connection] = child
                    selector.register(connection, selectors.EVENT_READ, connection)
                    selector.register(os.pidfd_open(child), selectors.EVENT_READ, connection)
                elif key.fileobj is key.data:  # Spark has killed the program that asked
                    selector.unregister(key.data)
                    os.kill(children[key.data], signal.SIGTERM)
                else:  # a child has ended
                    selector.unregister(key.fileobj)
                    os.close(key.fileobj)
                    _, status = os.waitpid(children.pop(key.data), 0)
                    with contextlib.suppress(KeyError):
                        selector.unregister(key.data)
                    with contextlib.suppress(OSError):
                        key.data.send(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                    key.data.close()


def _close(file):
    if isinstance(file, int):
        os.close(file)
    else:
        file.close()


def _request(connection):
    """Return what a program asks for, and its standard streams; None if it was killed before it had said all."""
    text, streams, _, _ = socket.recv_fds(connection, MOST_BYTES, STANDARD_STREAMS)
    while not text.endswith(b"\n"):
        more = connection.recv(MOST_BYTES)
        if not more:
            for stream in streams:
                os.close(stream)
            return None, []
        text += more
    return json.loads(text), streams


def _take(streams, environment):
    """Take over the standard streams and the environment of the program that asked."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)


def _run_module(_, module, *arguments):
    """Run ``-m module argument...`` as the interpreter does."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(":") if path and path not in sys.path]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))

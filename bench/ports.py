"""Ports for what the benchmark and the tests start."""

import contextlib
import os
import random
import socket

# Below those that systems give to clients, so that no connection takes one between its choice and its use.
_FIRST, _BEHIND = 12_000, 32_000
_given: set[int] = set()
_chance = random.Random(os.urandom(8))


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listens on; a process is given each once."""
    while True:
        port = _chance.randrange(_FIRST, _BEHIND)
        with contextlib.suppress(OSError), socket.socket() as listener:
            listener.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


def answers(port: int) -> bool:
    """Tell whether a program listens on a TCP port of the loopback interface."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False

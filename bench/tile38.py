"""Tile38 beside Lookout: the same fences over the same walk, over its own protocol, where it is installed.

Each query is a channel with a fence that tells what enters, stays and leaves (``SETCHAN ... INTERSECTS ... FENCE``);
all are evaluated. A client subscribes to the same queries as Lookout's client. An object is set with the time just
before it is sent, as a field; its age is taken when the client receives the message. One connection sends the objects,
many in one write; at full speed, it waits for their replies before it sends more.

References
----------
https://tile38.com/commands/setchan, https://tile38.com/topics/geofencing
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import psutil
import redis

from bench.baselines import walk
from bench.client import figures
from bench.live import StackFailed, wait_for
from bench.ports import free_port
from bench.scenarios import FULL_SPEED, query_boxes, watched
from bench.stack import child, said, told

VARIABLE, PROGRAM = "LOOKOUT_TILE38", "tile38-server"
HOW = (
    f"{PROGRAM} is neither on the PATH nor named by {VARIABLE}. It is built with Go: "
    "git clone https://github.com/tidwall/tile38 && cd tile38 && make"
)
FLEET = "fleet"
UP_S, SETTLE_S = 30.0, 2.0
# Objects in one write; at a rate, as many as the gateway puts into a block.
PIPELINE, TURN_S = 1_000, 0.025
RATES = (FULL_SPEED, 20_000)


class Missing(Exception):
    """Tile38 is not installed; the message says how it is."""


@dataclass(frozen=True)
class Tile38Row:
    """What was measured at one rate; see `measure.Row`."""

    rate: int
    queries: int
    objects: int
    sets_per_s: float
    latency: dict
    cores: float
    memory_mib: float


def program() -> str:
    """Return the path of the server.

    Raises
    ------
    Missing
        When it is not installed.
    """
    if not (found := shutil.which(os.environ.get(VARIABLE) or PROGRAM)):
        raise Missing(HOW)
    return found


@contextlib.contextmanager
def serving() -> Iterator[tuple[int, psutil.Process]]:
    """Start a server in a fresh folder, on loopback; yield its port and its process, and end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="lookout-tile38-", ignore_cleanup_errors=True) as folder:
        port, words = free_port(), Path(folder) / "words"
        with words.open("wb") as output:
            command = [program(), "-h", "127.0.0.1", "-p", str(port), "-d", str(Path(folder) / "data")]
            server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            wait_for(lambda: _answers(port) or server.poll() is not None, words.read_text, UP_S)
            if server.poll() is not None:
                raise StackFailed(words.read_text(errors="replace"))
            yield port, psutil.Process(server.pid)
        finally:
            server.kill()
            server.wait()


def _answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(command_bytes("PING"))
        return b"PONG" in connection.recv(64)


def measure(queries: int, objects: int, seconds: float) -> list[Tile38Row]:
    """Measure a server at full speed and at a rate, for `seconds` each.

    Raises
    ------
    Missing
        When Tile38 is not installed.
    """
    with serving() as (port, process):
        set_fences(port, queries)
        return [_measured(port, process, queries, objects, rate, seconds) for rate in RATES]


def _measured(port, process, queries, objects, rate, seconds):
    options = ("--port", str(port), "--objects", str(objects), "--queries", str(queries), "--rate", str(rate))
    with child("bench.tile38", "load", *options, "--seconds", str(seconds)) as load:
        said(load, "filled")
        with child("bench.tile38", "listen", *options, "--seconds", str(seconds)) as client:
            said(client, "measuring")
            load.stdin.write("go\n")
            load.stdin.flush()
            said(load, "measuring")
            before, began_s = sum(process.cpu_times()[:2]), time.monotonic()
            sets_per_s = told(load)["sets_per_s"]
            cores = (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began_s)
            memory_mib = process.memory_full_info().pss / 2**20
            return Tile38Row(rate, queries, objects, sets_per_s, told(client), cores, memory_mib)


def command_bytes(*words: str) -> bytes:
    r"""Return a command as Redis' protocol has it.

    Examples
    --------
    >>> command_bytes("GET", "a")
    b'*2\r\n$3\r\nGET\r\n$1\r\na\r\n'
    """
    return f"*{len(words)}\r\n".encode() + b"".join(b"$%d\r\n%b\r\n" % (len(w.encode()), w.encode()) for w in words)


def fence(number: int, box: list[float]) -> tuple[str, ...]:
    """Return the command that makes a query, given ``[lon_lo, lat_lo, lon_hi, lat_hi]`` in degrees."""
    west, south, east, north = (f"{edge:.9f}" for edge in box)
    area = ("INTERSECTS", FLEET, "FENCE", "DETECT", "enter,inside,exit", "BOUNDS", south, west, north, east)
    return ("SETCHAN", channel(number), *area)


def channel(number: int) -> str:
    """Return the name of a query's channel."""
    return f"query-{number}"


def set_fences(port: int, queries: int) -> None:
    """Make the queries of the benchmark."""
    with redis.Redis(port=port, protocol=2) as client:
        for number, box in enumerate(query_boxes(queries).tolist()):
            client.execute_command(*fence(number, box))


def sets(numbers: np.ndarray, places: np.ndarray, now_us: int) -> bytes:
    """Return the commands that set some objects, with a time.

    Parameters
    ----------
    numbers : ndarray of int, shape (N,)
    places : ndarray of float, shape (N, 2)
        Longitudes and latitudes in degrees.
    now_us : int
    """
    head = f"*9\r\n$3\r\nSET\r\n${len(FLEET)}\r\n{FLEET}\r\n$"
    time_us = f"$5\r\nFIELD\r\n$1\r\nt\r\n${len(str(now_us))}\r\n{now_us}\r\n$5\r\nPOINT\r\n$"
    commands = []
    for number, (lon, lat) in zip(numbers.tolist(), places.tolist(), strict=True):
        key, x, y = f"object {number}", f"{lon:.6f}", f"{lat:.6f}"
        commands.append(f"{head}{len(key)}\r\n{key}\r\n{time_us}{len(y)}\r\n{y}\r\n${len(x)}\r\n{x}\r\n")
    return "".join(commands).encode()


class Setter:
    """Sets the objects in turn over one connection.

    Parameters
    ----------
    port, objects, rows : int
        `rows` objects are set in one write.
    """

    def __init__(self, port: int, objects: int, rows: int) -> None:
        self._socket, self._rows = socket.create_connection(("127.0.0.1", port)), rows
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._updates = walk(rows, objects)

    def set(self) -> int:
        """Set the next objects, wait for their replies, and return how many they are.

        Raises
        ------
        StackFailed
            When the server refuses one, or closes the connection.
        """
        numbers, places = next(self._updates)
        np.clip(places[:, 1], -90, 90, out=places[:, 1])
        places[:, 0] = (places[:, 0] + 180) % 360 - 180
        self._socket.sendall(sets(numbers, places, time.time_ns() // 1000))
        replies, answer = 0, b""
        while replies < self._rows:
            answer = self._socket.recv(1 << 16)
            if not answer or b"-ERR" in answer:
                raise StackFailed(f"Tile38 refuses: {answer[:200]!r}")
            replies += answer.count(b"\n")
        return replies

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def load(port: int, objects: int, rate: int, seconds: float) -> None:
    """Set every object once, wait for a line, and set them for a span of time; print how many were set in a second."""
    rows = PIPELINE if rate == FULL_SPEED else max(1, round(rate * TURN_S))
    setter = Setter(port, objects, rows)
    filled = 0
    while filled < objects:
        filled += setter.set()
    print("filled", flush=True)
    input()
    print("measuring", flush=True)
    sent, began_s = 0, time.monotonic()
    while (spent_s := time.monotonic() - began_s) < SETTLE_S + seconds:
        if rate != FULL_SPEED:
            time.sleep(max(0.0, sent / rate - spent_s))
        sent += setter.set()
    setter.close()
    print(json.dumps({"sets_per_s": sent / (time.monotonic() - began_s)}))


def listen(port: int, queries: int, seconds: float) -> None:
    """Subscribe to the watched queries, and print the figures of the ages of their messages."""
    with redis.Redis(port=port, protocol=2) as client, client.pubsub(ignore_subscribe_messages=True) as messages:
        messages.subscribe(*(channel(number) for number in watched(queries)))
        while messages.get_message(timeout=1.0):
            pass
        print("measuring", flush=True)
        received: list[tuple[int, bytes]] = []
        ends_s = time.monotonic() + SETTLE_S + seconds
        began_us = time.time_ns() // 1000 + round(1e6 * SETTLE_S)
        while time.monotonic() < ends_s:
            message = messages.get_message(ignore_subscribe_messages=True, timeout=0.1)
            if message and message["type"] == "message":
                received.append((time.time_ns() // 1000, message["data"]))
    ages = [at - time_us for at, data in received if at >= began_us and (time_us := time_of(data)) is not None]
    print(json.dumps(figures(np.array(ages))))


def time_of(message: bytes) -> int | None:
    """Return the time with which an object was set, in microseconds, from a message of a fence; None without one."""
    fields = orjson.loads(message).get("fields")
    return round(fields["t"]) if fields and "t" in fields else None


def main() -> None:
    """Load a server, or listen to it."""
    parser = argparse.ArgumentParser(prog="python -m bench.tile38", description=main.__doc__)
    parser.add_argument("what", choices=("load", "listen"))
    for name in ("port", "objects", "queries", "rate"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    if arguments.what == "load":
        load(arguments.port, arguments.objects, arguments.rate, arguments.seconds)
    else:
        listen(arguments.port, arguments.queries, arguments.seconds)


if __name__ == "__main__":
    main()

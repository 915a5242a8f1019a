"""The load through the gateway: CSV lines over TCP, each with the time just before it is written."""

import argparse
import socket
import time

import numpy as np

from bench.load import STEP_DEG
from bench.scenarios import SEED

TURN_S = 0.02


def lines(numbers: np.ndarray, places: np.ndarray, now_us: int) -> bytes:
    """Return the lines of some objects: key, time, longitude, latitude and speed.

    Parameters
    ----------
    numbers : ndarray of int, shape (N,)
    places : ndarray of float, shape (N, 2)
        Longitudes and latitudes in degrees.
    now_us : int
    """
    pairs = zip(numbers.tolist(), places.tolist(), strict=True)
    return "".join(f"object {n},{now_us},{lon:.6f},{lat:.6f},{n % 30}\n" for n, (lon, lat) in pairs).encode()


def send(port: int, objects: int, rate: int) -> None:
    """Send all objects in turn for ever, `rate` lines a second; print ``filled`` once each has been sent."""
    rng = np.random.default_rng(SEED)
    places = rng.random((objects, 2)) * [360, 180] - [180, 90]
    size, cursor, sent, due_s = round(rate * TURN_S), 0, 0, time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        while True:
            numbers = np.arange(cursor, cursor + size) % objects
            places[numbers] += rng.normal(0.0, STEP_DEG, (size, 2))
            places[:, 1].clip(-90, 90, out=places[:, 1])
            connection.sendall(lines(numbers, places[numbers], time.time_ns() // 1000))
            if sent < objects <= sent + size:
                print("filled", flush=True)
            cursor, sent = (cursor + size) % objects, sent + size
            due_s = max(due_s + TURN_S, time.monotonic() - 1)
            time.sleep(max(0.0, due_s - time.monotonic()))


def main() -> None:
    """Send until ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.wire", description=main.__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--rate", type=int, default=20_000)
    arguments = parser.parse_args()
    send(arguments.port, arguments.objects, arguments.rate)


if __name__ == "__main__":
    main()

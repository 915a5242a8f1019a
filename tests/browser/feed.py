"""A stream that a test feeds by hand: GeoJSON lines to a TCP listener of the gateway."""

import contextlib
import json
import socket
import threading

from bench.live import wait_for

REPEATED_EVERY_S = 0.5


class Feed:
    """A stream of ships that are where the test says.

    Parameters
    ----------
    live : tests.live.stack.Stack
    name : str
    port : int
        Free.
    **fields
        Of the stream.
    """

    def __init__(self, live, name: str, port: int, **fields) -> None:
        self.live, self.name, self.port = live, name, port
        listener = {"kind": "tcp_listener", "port": port}
        about = {"title": f"Ships of {name}", "icon": "ship", "ttl_s": 3600} | fields
        live.add_stream(name, listener, {"kind": "geojson"}, **about)
        self._line = wait_for(lambda: connected(port), "a listener")

    def put(self, **places: tuple[float, float]) -> None:
        """Report where objects are: longitude and latitude by key."""
        self.send("".join(f"{json.dumps(feature(key, place))}\n" for key, place in places.items()).encode())

    @contextlib.contextmanager
    def repeated(self, **places: tuple[float, float]):
        """Report where objects are, again and again until the block ends, so that none is lost meanwhile."""
        ended = threading.Event()

        def repeat():
            self.put(**places)
            while not ended.wait(REPEATED_EVERY_S):
                self.put(**places)

        repeating = threading.Thread(target=repeat)
        repeating.start()
        try:
            yield
        finally:
            ended.set()
            repeating.join()

    def send(self, payload: bytes) -> None:
        """Send bytes as they are."""
        self._line.sendall(payload)

    def end(self) -> None:
        """Remove the stream."""
        self._line.close()
        self.live.remove_stream(self.name)


def connected(port: int) -> socket.socket | None:
    """Return a connection, or nothing as long as nobody listens."""
    try:
        return socket.create_connection(("127.0.0.1", port))
    except ConnectionRefusedError:
        return None


def feature(key, place):
    """Return a GeoJSON feature."""
    properties = {"name": f"MS {key.title()}", "speed_mps": 7.5, "course_deg": 90}
    return {
        "type": "Feature",
        "id": key,
        "geometry": {"type": "Point", "coordinates": place},
        "properties": properties,
    }

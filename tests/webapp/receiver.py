"""A receiver of webhooks on loopback that fails on purpose, and that honours idempotency keys."""

import json
import random
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from bench.live import PATIENCE_S

# What a receiver can do with a message: refuse it, say nothing for long, close the connection before it has taken the
# message, take it and close the connection without a reply, take it.
FAULTS = ("refuse", "hang", "close", "take_and_close")
HANG_S = 3.0


class Receiver:
    """An HTTP server; a context that ends it.

    Parameters
    ----------
    failing : float
        Which part of all requests fail, in one of the ways of `FAULTS`.
    seed : int
    delay_s : float
        How long each request takes.

    Attributes
    ----------
    taken : dict of str to dict
        The documents, by idempotency key: a key that is known already changes nothing.
    requests : list of (headers, body, path)
    faults : Counter
    status, headers : int, dict
        What `refuse` answers.
    """

    def __init__(self, failing=0.0, seed=1, delay_s=0.0):
        self.failing, self.delay_s = failing, delay_s
        self.taken, self.requests, self.faults = {}, [], Counter()
        self.status, self.headers = 500, {}
        self.always = ""
        self._dice, self._lock = random.Random(seed), threading.Lock()
        self._changed = threading.Condition(self._lock)

    def __enter__(self):
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/alarms"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def until(self, count, timeout_s=PATIENCE_S):
        """Wait until so many messages are taken; return how many are."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.taken) >= count, timeout_s)
            return len(self.taken)

    def _turn(self, key, headers, body, path):
        """Note a request, and decide what happens to it."""
        with self._changed:
            fault = self.always or (self._dice.choice(FAULTS) if self._dice.random() < self.failing else "")
            self.requests.append((headers, body, path))
            self.faults[fault] += 1
            if fault in ("", "take_and_close"):
                self.taken.setdefault(key, json.loads(body))
                self._changed.notify_all()
            return fault

    def _handler(self):
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                fault = receiver._turn(self.headers["Idempotency-Key"], dict(self.headers), body, self.path)
                if receiver.delay_s:
                    time.sleep(receiver.delay_s)
                if fault == "hang":
                    time.sleep(HANG_S)
                if fault in ("hang", "close", "take_and_close"):
                    self.close_connection = True
                    return
                self.send_response(receiver.status if fault == "refuse" else 200)
                for name, value in receiver.headers.items() if fault == "refuse" else ():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                """Write no log."""

        return Handler

"""A collector of traces on loopback: it takes OTLP over HTTP, and keeps the spans."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

# Recordings run through the same installation, so few elements are sampled.
RATIO = 0.001


class KeptSpan(NamedTuple):
    """A span as it was sent. Its ids are in hexadecimal digits, and `before` is the id of the span before."""

    service: str
    name: str
    trace: str
    number: str
    before: str
    began_ns: int
    ended_ns: int
    attributes: dict


class Collector:
    """Keeps the spans that it is sent.

    Attributes
    ----------
    url : str
        For ``OTEL_EXPORTER_OTLP_ENDPOINT``.
    """

    def __init__(self) -> None:
        self._spans: list[KeptSpan] = []
        collector = self

        class Receiver(BaseHTTPRequestHandler):
            def do_POST(self):
                assert self.path == "/v1/traces"
                collector.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        """The environment of programs that send their traces here."""
        return {
            "LOOKOUT_TRACE_RATIO": str(RATIO),
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "200",
        }

    def take(self, body: bytes) -> None:
        """Keep the spans of a request."""
        for of in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _plain(of.resource.attributes)["service.name"]
            for span in (span for scope in of.scope_spans for span in scope.spans):
                ids = (made.hex() for made in (span.trace_id, span.span_id, span.parent_span_id))
                times = span.start_time_unix_nano, span.end_time_unix_nano
                self._spans.append(KeptSpan(service, span.name, *ids, *times, _plain(span.attributes)))

    def trace(self, trace: str) -> list[KeptSpan]:
        """Return the spans of a trace, in the order of their beginnings."""
        return sorted((span for span in self._spans if span.trace == trace), key=lambda span: span.began_ns)

    def close(self) -> None:
        """End."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _plain(attributes):
    """Return attributes as a dict, lists as lists of whole numbers."""
    told = {}
    for attribute in attributes:
        kind = attribute.value.WhichOneof("value")
        value = getattr(attribute.value, kind)
        told[attribute.key] = [one.int_value for one in value.values] if kind == "array_value" else value
    return told


@pytest.fixture(scope="session")
def collector():
    """Run a collector, to which the whole of Lookout sends its traces (`live`)."""
    made = Collector()
    yield made
    made.close()

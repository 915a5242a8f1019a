"""Transports by their kind: the built-in ones, and those that other packages offer by an entry point.

A package adds a kind by an entry point of the group ``lookout.transports``: its name is the kind, its object a callable
that takes the definition (a dict with `kind` and options) and returns a `base.Transport`.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from streaming.errors import InvalidOptions
from streaming.gateway.transports.base import Transport

ENTRY_POINTS = "lookout.transports"

_BUILT_IN = {
    "file": "file:FileTransport",
    "tcp_client": "tcp_client:TcpClient",
    "tcp_listener": "tcp_listener:TcpListener",
    "udp_listener": "udp_listener:UdpListener",
    "http_poll": "http_poll:HttpPoll",
    "pipe": "pipe:Pipe",
    "stdin": "stdin:Stdin",
    "simulator": "simulator:Simulator",
}


def _registry() -> dict[str, EntryPoint]:
    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    built_in = {kind: EntryPoint(kind, f"{__name__}.{path}", ENTRY_POINTS) for kind, path in _BUILT_IN.items()}
    return offered | built_in


def transport_kinds() -> list[str]:
    """Return the kinds that `make_transport` knows, sorted."""
    return sorted(_registry())


def make_transport(definition: Mapping[str, Any]) -> Transport:
    """Return the transport that a stream's definition describes; it opens nothing yet.

    Parameters
    ----------
    definition : mapping
        `kind` and the options of that kind, for instance ``{"kind": "tcp_client", "host": "localhost", "port": 5631}``.

    Raises
    ------
    InvalidOptions
        When the kind is unknown or its options break a rule.

    Examples
    --------
    >>> make_transport({"kind": "tcp_client", "host": "localhost", "port": 5631}).live
    True
    """
    if not isinstance(definition, Mapping):
        raise InvalidOptions(f"a transport must be an object with a kind; got {definition!r}")
    registry = _registry()
    kind = definition.get("kind")
    if not isinstance(kind, str) or kind not in registry:
        raise InvalidOptions(f"a transport's kind must be one of {', '.join(sorted(registry))}; got {kind!r}")
    return registry[kind].load()(definition)

"""Transports by kind: the built-in ones, and those that other packages offer by an entry point.

A package adds a kind by an entry point of the group ``lookout.transports``. The entry point's name is the kind. Its
object is a callable that takes the definition (a dict with `kind` and options) and returns a `base.Transport`.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

from streaming.decoders.options import OptionDescription, describe
from streaming.entry_points import known_kinds
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.transports.base import Restricted, Transport

GROUP = "lookout.transports"

BUILT_IN = {
    "file": "streaming.gateway.transports.file:FileTransport",
    "tcp_client": "streaming.gateway.transports.tcp_client:TcpClient",
    "tcp_listener": "streaming.gateway.transports.tcp_listener:TcpListener",
    "udp_listener": "streaming.gateway.transports.udp_listener:UdpListener",
    "http_poll": "streaming.gateway.transports.http_poll:HttpPoll",
    "pipe": "streaming.gateway.transports.pipe:Pipe",
    "stdin": "streaming.gateway.transports.stdin:Stdin",
    "simulator": "streaming.gateway.transports.simulator:Simulator",
}


def _kinds() -> dict[str, EntryPoint]:
    return known_kinds(GROUP, BUILT_IN)


def transport_kinds() -> list[str]:
    """Return the kinds that `make_transport` knows, sorted."""
    return sorted(_kinds())


def transport_class(kind: Any) -> type[Transport]:
    """Return the class, or another callable, that makes transports of a kind.

    Raises
    ------
    InvalidOptions
        When there is no such kind.
    """
    kinds = _kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidOptions(
            "a transport's kind must be one of %(kinds)s; got %(kind)s",
            kinds=", ".join(sorted(kinds)),
            kind=repr(kind),
        )
    return kinds[kind].load()


def describe_transport(kind: str) -> list[OptionDescription] | None:
    """Return the options of a kind of transport, in order; None if it does not declare them."""
    declared = getattr(transport_class(kind), "declared", None)
    return None if declared is None else describe(declared)


def make_transport(definition: Mapping[str, Any], access: FeedAccess | None = None) -> Transport:
    """Return the transport that a stream's definition describes; it opens nothing yet.

    Parameters
    ----------
    definition : mapping
        `kind` and the options of that kind, for instance ``{"kind": "tcp_client", "host": "localhost", "port": 5631}``.
    access : FeedAccess, optional
        What the feed may reach; by default, what the environment of this process allows.

    Raises
    ------
    InvalidOptions
        When the kind is unknown, its options break a rule, or the feed is out of reach.

    Examples
    --------
    >>> make_transport({"kind": "tcp_client", "host": "localhost", "port": 5631}).live
    True
    """
    if not isinstance(definition, Mapping):
        raise InvalidOptions(
            "a transport must be an object with a kind; got %(definition)s", definition=repr(definition)
        )
    transport = transport_class(definition.get("kind"))(definition)
    if isinstance(transport, Restricted):
        transport.restrict(access or FeedAccess.from_environ())
    return transport

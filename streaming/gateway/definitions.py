"""Definitions of streams, as the hash ``lookout:streams`` holds them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from streaming.decoders import make_decoder
from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.clock import MAX_AHEAD_S
from streaming.gateway.transports import make_transport
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.stream import parse_stream_sketch
from streaming.spaces import Space

_REQUIRED = ("name", "space", "transport", "decoder")
_OPTIONAL = ("enabled", "ttl_s", "stored", "sketch", "max_ahead_s", "max_age_s")


@dataclass(frozen=True)
class StreamDefinition:
    """A stream: where its bytes come from, how they are decoded, and how the engine treats its objects.

    Parameters
    ----------
    name, space : str
    transport, decoder : dict
        Each has a `kind` and the options of that kind.
    enabled : bool
    ttl_s : float or None
        Time to live of an object, in seconds; None for ever.
    stored : bool
        Whether the engine stores its elements.
    sketch : dict or None
        How the engine sketches its elements (`streaming.sketch.stream`); None for not at all.
    max_ahead_s : float
        Elements whose event time is ahead of the clock by more seconds than this are malformed.
    max_age_s : float or None
        Elements whose event time is behind the clock by more seconds than this change no answer. They are stored if the
        stream is. None for no such bound.
    """

    name: str
    space: str
    transport: Mapping[str, Any]
    decoder: Mapping[str, Any]
    enabled: bool = True
    ttl_s: float | None = None
    stored: bool = False
    sketch: Mapping[str, Any] | None = None
    max_ahead_s: float = MAX_AHEAD_S
    max_age_s: float | None = None


def read_definition(payload: bytes) -> StreamDefinition:
    """Return the definition that a JSON document states; ignore keys that the gateway does not need.

    Raises
    ------
    InvalidOptions
        When the document is not an object with the keys that a definition needs.
    """
    try:
        document = orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise InvalidOptions("a definition must be JSON; %(error)s", error=error) from None
    if not isinstance(document, dict) or any(key not in document for key in _REQUIRED):
        raise InvalidOptions(
            "a definition must be an object with %(required)s; got %(document)s",
            required=", ".join(_REQUIRED),
            document=f"{document!r:.200}",
        )
    return StreamDefinition(**{key: document[key] for key in (*_REQUIRED, *_OPTIONAL) if key in document})


def check_definition(
    definition: StreamDefinition, spaces: Mapping[str, Space], access: FeedAccess | None = None
) -> None:
    """Raise InvalidOptions unless a definition can run in one of the spaces, which are given by name.

    `access` is what the feed may reach; by default, what the environment of this process allows.
    """
    if not isinstance(definition.space, str) or definition.space not in spaces:
        raise InvalidOptions(
            "space must be one of %(spaces)s; got %(space)s", spaces=", ".join(spaces), space=repr(definition.space)
        )
    for name in ("enabled", "stored"):
        if not isinstance(getattr(definition, name), bool):
            raise InvalidOptions(
                "%(name)s must be true or false; got %(value)s", name=name, value=repr(getattr(definition, name))
            )
    for name in ("ttl_s", "max_age_s"):
        if (seconds := getattr(definition, name)) is not None and not _is_positive(seconds):
            raise InvalidOptions(
                "%(name)s must be null or a positive number; got %(value)s", name=name, value=repr(seconds)
            )
    if not _is_positive(definition.max_ahead_s):
        raise InvalidOptions(
            "max_ahead_s must be a positive number; got %(max_ahead_s)s", max_ahead_s=repr(definition.max_ahead_s)
        )
    if definition.sketch is not None:
        check_sketch(definition.sketch, spaces[definition.space])
    make_transport(definition.transport, access)
    make_decoder(definition.decoder, definition.name, spaces[definition.space])


def check_sketch(document: Any, space: Space) -> None:
    """Raise InvalidOptions unless a document says how the stream of a space can be sketched."""
    try:
        parse_stream_sketch(document, space)
    except InvalidSketch as error:
        raise InvalidOptions.of(error, "sketch") from None


def _is_positive(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and number > 0

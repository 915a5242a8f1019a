"""What a transport is, and how its options are checked."""

import math
from collections.abc import AsyncGenerator, Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

from streaming.errors import InvalidOptions, LookoutError
from streaming.gateway.access import FeedAccess

# The types that a field of an options class accepts, by its annotation.
_KINDS = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    Mapping: (Mapping,),
}

READ_BYTES = 1 << 16


class TransportError(LookoutError):
    """A feed cannot be read at the moment; the stream tries again later."""


class Mark(Enum):
    """What happens after the bytes of a chunk; see `Chunk`."""

    BYTES = "bytes"
    DOCUMENT_END = "document_end"
    SOURCE_GONE = "source_gone"
    LAP_END = "lap_end"


@dataclass(frozen=True)
class Chunk:
    """Some bytes of a feed.

    Parameters
    ----------
    source : str
        The sender, for instance a client's address; each source has a decoder of its own.
    payload : bytes
        Empty bytes say that the feed is open, though silent.
    mark : Mark
        What happens after the bytes: nothing; a document ends; the source has gone for good; or a recording ends and
        begins again.
    lost : int
        Number of datagrams that were lost before this chunk, because nobody took them in time.
    """

    source: str = ""
    payload: bytes = b""
    mark: Mark = Mark.BYTES
    lost: int = 0


OPEN = Chunk()


@dataclass(frozen=True)
class Replay:
    """How a recording is played.

    Parameters
    ----------
    speed : float
        A multiple of the recorded speed; 0 for as fast as possible.
    restamp : bool
        Whether event times and versions are moved to the time of the replay.
    by_time : bool, optional
        Whether all elements are read first and then played in the order of their event times.
    """

    speed: float
    restamp: bool
    by_time: bool = False


@runtime_checkable
class Transport(Protocol):
    """Where the bytes of a stream come from.

    Attributes
    ----------
    live : bool
        Whether the feed goes on while nobody reads it, so that the gateway conflates it under overload; otherwise it
        waits.
    replay : Replay or None
        How a recording is played; None for a feed that is no recording.
    """

    live: bool
    replay: Replay | None

    def __init__(self, definition: Mapping[str, Any]) -> None: ...

    def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Open the feed and yield its bytes until it ends; may be called again after an error.

        Raises
        ------
        OSError, TransportError
            When the feed cannot be opened, or breaks.
        """
        ...


Options = TypeVar("Options")


class Restricted:
    """Base of the transports that read files or connect to hosts: they use only those that the operator allows.

    Attributes
    ----------
    access : FeedAccess
        What the feed may reach; before `restrict` is called, the default of `FeedAccess`.
    """

    access: FeedAccess = FeedAccess()

    def restrict(self, access: FeedAccess) -> None:
        """Set what the feed may reach.

        Raises
        ------
        InvalidOptions
            If the options ask for more.
        """
        self.access = access
        self.check_access()

    def check_access(self) -> None:
        """Raise InvalidOptions if the options ask for more than `access` allows."""
        raise NotImplementedError

    def allowed_file(self, path: str) -> Path:
        """Return the absolute path that a path leads to now, with symbolic links followed.

        Raises
        ------
        TransportError
            If that path is no longer below an allowed folder.
        """
        try:
            return self.access.file(path)
        except InvalidOptions as error:
            raise TransportError.of(error) from None


class LiveTransport:
    """Base of the transports whose feeds do not wait."""

    live: ClassVar[bool] = True
    replay: ClassVar[None] = None


def parse_options(options: type[Options], document: Mapping[str, Any]) -> Options:
    """Return a transport's options from its definition.

    Parameters
    ----------
    options : type
        A frozen dataclass whose fields are str, int, float, bool or Mapping; it may check their values when it is made.
    document : mapping
        The definition, with its `kind`.

    Raises
    ------
    InvalidOptions
        When a key is unknown or missing, a value has the wrong type, or a number is not finite.
    """
    known = {field.name: field for field in fields(options)}  # type: ignore[arg-type]
    given = {key: value for key, value in document.items() if key != "kind"}
    unknown = sorted(set(given) - set(known))
    if unknown:
        allowed = ", ".join(known) or "none"
        raise InvalidOptions(
            "options of the transport %(kind)s are %(allowed)s; got %(unknown)s",
            kind=document.get("kind"),
            allowed=allowed,
            unknown=", ".join(unknown),
        )
    for name, field in known.items():
        if name in given:
            _check_type(name, given[name], field.type)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InvalidOptions(
                "the transport %(kind)s needs the option %(name)s; got %(given)s",
                kind=document.get("kind"),
                name=name,
                given=sorted(given),
            )
    return options(**given)


def _check_type(name: str, value: Any, kind: Any) -> None:
    accepted = isinstance(value, _KINDS[kind]) and (kind is bool or not isinstance(value, bool))
    if not accepted:
        raise InvalidOptions(
            "%(name)s must be of type %(type)s; got %(value)s", name=name, type=kind.__name__, value=repr(value)
        )
    if kind is float and not math.isfinite(value):
        raise InvalidOptions("%(name)s must be finite; got %(value)s", name=name, value=repr(value))


def check_port(port: int, lowest: int = 1) -> None:
    """Raise InvalidOptions unless `port` is a port number; `lowest` 0 also allows 0, any free port."""
    check(
        lowest <= port <= 65_535, "port must lie in [%(lowest)s, 65535]; got %(port)s", lowest=lowest, port=repr(port)
    )


def check(rule: bool, text: str, /, **values: Any) -> None:
    """Raise InvalidOptions with a text and its values unless `rule` holds."""
    if not rule:
        raise InvalidOptions(text, **values)

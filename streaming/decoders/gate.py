"""The gate around every decoder: it lets only sound elements pass, and replaces a decoder that fails."""

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from streaming.decoders.base import MAX_SAMPLE_BYTES, Decoded, Decoder, Malformed
from streaming.decoders.framing import Unpacker
from streaming.decoders.soundness import sound
from streaming.elements import element_schema
from streaming.language import gettext_noop
from streaming.spaces import Space

logger = logging.getLogger(__name__)

FAILED = gettext_noop("decoder failed")


class GatedDecoder:
    """A decoder that gives only sound elements, goes on after an error, and unpacks input that is packed with gzip.

    Parameters
    ----------
    make : function without arguments
        Returns a new decoder. It is called again after each error, since a decoder that failed may be in any state.
    space : Space
    drop_null_island : bool
        See `streaming.decoders.soundness.sound`.
    unknown_everywhere : bool
        Likewise.

    Attributes
    ----------
    inner : Decoder
        The decoder that decodes at present.
    """

    def __init__(
        self,
        make: Callable[[], Decoder],
        space: Space,
        drop_null_island: bool = True,
        unknown_everywhere: bool = False,
    ) -> None:
        self._make, self._space, self._rules = make, space, (drop_null_island, unknown_everywhere)
        self._unpacker = Unpacker()
        self.inner = make()
        self.options = self.inner.options
        self._told: set[type] = set()

    @property
    def waiting(self) -> bool:
        """Whether the decoder holds elements that wait for a time; see `Decoder.feed`."""
        return bool(getattr(self.inner, "waiting", False))

    @property
    def noted(self) -> str | None:
        """What the decoder notes about its input, such as columns that the input lacks; None if nothing."""
        return getattr(self.inner, "noted", None)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Decode the complete pieces of the bytes so far; see `Decoder.feed`."""
        was_faulty = self._unpacker.fault is not None
        parts = [self._decoded("feed", received_us, piece) for piece in self._unpacker.feed(data)]
        if self._unpacker.fault and not was_faulty:
            parts.append(self._nothing(self._unpacker.fault, data))
        return _joined(parts)

    def finish(self, received_us: int) -> Decoded:
        """Decode the rest; see `Decoder.finish`."""
        parts = [self._decoded("feed", received_us, piece) for piece in self._unpacker.finish()]
        if self._unpacker.fault:
            parts.append(self._nothing(self._unpacker.fault, b""))
            self._unpacker = Unpacker()
        return _joined([*parts, self._decoded("finish", received_us)])

    def _decoded(self, method: str, received_us: int, *data: bytes) -> Decoded:
        try:
            return sound(getattr(self.inner, method)(*data, received_us), self._space, *self._rules)
        except Exception as error:  # neither the input nor a third-party decoder must end the stream
            return self._failed(error, *data)

    def _failed(self, error: Exception, data: bytes = b"") -> Decoded:
        if type(error) not in self._told:
            self._told.add(type(error))
            logger.error("a decoder failed; its input is counted as malformed", exc_info=error)
        self.inner = self._make()
        return self._nothing(f"{FAILED}: {type(error).__name__}", data)

    def _nothing(self, reason: str, data: bytes) -> Decoded:
        fault = Malformed(reason, bytes(data[:MAX_SAMPLE_BYTES]))
        return Decoded(element_schema(self._space).empty_table(), (fault,))


def _joined(parts: Sequence[Decoded]) -> Decoded:
    """Return what several calls of a decoder returned as one."""
    if len(parts) == 1:
        return parts[0]
    malformed = tuple(fault for part in parts for fault in part.malformed)
    return Decoded(pa.concat_tables([part.elements for part in parts]), malformed)

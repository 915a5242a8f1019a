"""The gate around every decoder: it lets only sound elements pass, and replaces a decoder that fails."""

import logging
from collections.abc import Callable

from streaming.decoders.base import MAX_SAMPLE_BYTES, Decoded, Decoder, Malformed
from streaming.decoders.soundness import sound
from streaming.elements import element_schema
from streaming.language import gettext_noop
from streaming.spaces import Space

logger = logging.getLogger(__name__)

FAILED = gettext_noop("decoder failed")


class GatedDecoder:
    """A decoder that gives only sound elements, and goes on after an error.

    Parameters
    ----------
    make : function without arguments
        Returns a new decoder. It is called again after each error, since a decoder that failed may be in any state.
    space : Space

    Attributes
    ----------
    inner : Decoder
        The decoder that decodes at present.
    """

    def __init__(self, make: Callable[[], Decoder], space: Space) -> None:
        self._make, self._space = make, space
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
        try:
            return sound(self.inner.feed(data, received_us), self._space)
        except Exception as error:  # neither the input nor a third-party decoder must end the stream
            return self._failed(error, data)

    def finish(self, received_us: int) -> Decoded:
        """Decode the rest; see `Decoder.finish`."""
        try:
            return sound(self.inner.finish(received_us), self._space)
        except Exception as error:
            return self._failed(error, b"")

    def _failed(self, error: Exception, data: bytes) -> Decoded:
        if type(error) not in self._told:
            self._told.add(type(error))
            logger.error("a decoder failed; its input is counted as malformed", exc_info=error)
        self.inner = self._make()
        fault = Malformed(f"{FAILED}: {type(error).__name__}", bytes(data[:MAX_SAMPLE_BYTES]))
        return Decoded(element_schema(self._space).empty_table(), (fault,))

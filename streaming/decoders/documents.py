"""Base of the decoders of whole documents: it gathers bytes until the document ends."""

from dataclasses import dataclass

from streaming.decoders.base import Decoded, Points
from streaming.decoders.framing import TOO_LONG_DOCUMENT, Document
from streaming.decoders.options import DecoderOptions, option
from streaming.elements import element_schema
from streaming.spaces import EARTH, Space


@dataclass(frozen=True)
class DocumentOptions(DecoderOptions):
    """Options of every decoder of documents."""

    max_document_bytes: int = option(64_000_000, "longer documents are malformed", minimum=1000)


class DocumentDecoder:
    """Base of decoders whose input between two calls of `finish` is one document.

    Parameters
    ----------
    options : DocumentOptions
    stream : str
    space : Space
    """

    options: type[DocumentOptions] = DocumentOptions

    def __init__(self, options: DocumentOptions, stream: str, space: Space = EARTH) -> None:
        self._options, self._stream, self._space = options, stream, space
        self._document = Document(options.max_document_bytes)

    def feed(self, data: bytes, received_us: int) -> Decoded:
        """Keep a piece of the document; `finish` returns its elements. See `Decoder.feed`."""
        points = Points(self._stream, self._space)
        for beginning in self._document.feed(data):
            points.fault(TOO_LONG_DOCUMENT, beginning)
        return Decoded(element_schema(self._space).empty_table(), tuple(points.malformed))

    def finish(self, received_us: int) -> Decoded:
        """Decode the document; see `Decoder.finish`."""
        points = Points(self._stream, self._space)
        for document in self._document.finish():
            self._read(document, received_us, points)
        return points.decoded()

    def _read(self, document: bytes, received_us: int, points: Points) -> None:
        """Add the elements and faults of a document."""
        raise NotImplementedError

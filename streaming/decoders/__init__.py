"""Decoders: they turn the bytes of a feed into elements."""

from streaming.decoders.base import Decoded, Decoder, Malformed
from streaming.decoders.registry import decoder_class, decoder_kinds, make_decoder

__all__ = ["Decoded", "Decoder", "Malformed", "decoder_class", "decoder_kinds", "make_decoder"]

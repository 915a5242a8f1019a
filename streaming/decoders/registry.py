"""The kinds of decoders: the built-in ones, and those that other packages offer by an entry point."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

from streaming.decoders.base import Decoder
from streaming.decoders.gate import GatedDecoder
from streaming.decoders.options import EVERYWHERE, NOWHERE
from streaming.entry_points import known_kinds
from streaming.errors import InvalidOptions
from streaming.spaces import EARTH, Space

GROUP = "lookout.decoders"

BUILT_IN = {
    "ais": "streaming.decoders.ais:AisDecoder",
    "sbs": "streaming.decoders.sbs:SbsDecoder",
    "aircraft_json": "streaming.decoders.aircraft_json:AircraftJsonDecoder",
    "gtfs_realtime": "streaming.decoders.gtfs_realtime:GtfsRealtimeDecoder",
    "geojson": "streaming.decoders.geojson:GeoJsonDecoder",
    "csv": "streaming.decoders.csv_columns:CsvDecoder",
}


def _kinds() -> dict[str, EntryPoint]:
    return known_kinds(GROUP, BUILT_IN)


def decoder_kinds() -> list[str]:
    """Return the names of all kinds of decoders.

    Examples
    --------
    >>> "ais" in decoder_kinds()
    True
    """
    return list(_kinds())


def decoder_class(kind: str) -> type[Decoder]:
    """Return the class of a kind of decoder; its attribute `options` is the dataclass of its options.

    Raises
    ------
    InvalidOptions
        When there is no such kind.
    """
    if not isinstance(kind, str) or kind not in _kinds():
        raise InvalidOptions(
            "a decoder's kind must be one of %(value)s; got %(kind)s", value=", ".join(_kinds()), kind=repr(kind)
        )
    return _kinds()[kind].load()


def make_decoder(definition: Mapping[str, Any], stream: str, space: Space = EARTH) -> GatedDecoder:
    """Return a stream's decoder behind a gate, so that it gives only sound elements and never raises.

    Parameters
    ----------
    definition : mapping
        ``{"kind": "ais", ...options}``.
    stream : str
        The name of the stream, which enters every element's key hash.
    space : Space

    Raises
    ------
    InvalidOptions
        With the rule that the definition breaks, and the value; also if the decoder gives no elements of the space.
    """
    if not isinstance(definition, Mapping):
        raise InvalidOptions(
            'a decoder must be an object like {"kind": "ais"}; got %(definition)s', definition=repr(definition)
        )
    options = dict(definition)
    kind = decoder_class(options.pop("kind", None))
    parsed = kind.options.parse(options)
    parsed.check_space(space)
    everywhere = getattr(parsed, "unknown_altitude", NOWHERE) == EVERYWHERE
    drop_null_island = getattr(parsed, "drop_null_island", True)
    return GatedDecoder(lambda: kind(parsed, stream, space), space, drop_null_island, everywhere)

"""How a stream is sketched: the settings of its sketch, and of its sets."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import InvalidSketch, SketchSettings, parse_settings, settings_document
from streaming.spaces import EARTH, Space


@dataclass(frozen=True)
class StreamSketch:
    """How a stream is sketched.

    Parameters
    ----------
    sketch : SketchSettings
    sets : SetSettings or None
        None for no sets.
    """

    sketch: SketchSettings
    sets: SetSettings | None = None


def stream_sketch_document(told: StreamSketch) -> dict[str, Any]:
    """Return how a stream is sketched as a JSON document: the settings of the sketch, with those of sets in `sets`."""
    return settings_document(told.sketch) | ({} if told.sets is None else {"sets": asdict(told.sets)})


def parse_stream_sketch(document: Any, space: Space = EARTH) -> StreamSketch:
    """Return how a stream is sketched; the inverse of `stream_sketch_document`.

    Raises
    ------
    InvalidSketch
        If the document breaks a rule. The message says the rule and the value.

    Examples
    --------
    >>> parse_stream_sketch({"features": ["speed_mps"], "sets": {"features": ["key"]}}).sets.features
    ('key',)
    """
    if not isinstance(document, Mapping):
        raise InvalidSketch("a sketch must be an object; got %(document)s", document=f"{document!r:.80}")
    own = {name: value for name, value in document.items() if name != "sets"}
    sets = document.get("sets")
    return StreamSketch(parse_settings(own, space), None if sets is None else _sets(sets))


def _sets(document: Any) -> SetSettings:
    known = {field.name for field in fields(SetSettings)}
    if not isinstance(document, Mapping) or not set(document) <= known:
        raise InvalidSketch(
            "sets must be an object with %(known)s; got %(document)s",
            known=", ".join(sorted(known)),
            document=f"{document!r:.200}",
        )
    names = document.get("features")
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        raise InvalidSketch("sets: features must be a list of names; got %(names)s", names=f"{names!r:.200}")
    return SetSettings(**{**document, "features": tuple(names)})

"""Read the question of a request for a page of a replay, and check it against the database."""

from collections.abc import Mapping

from django.conf import settings
from django.utils.translation import gettext

from streaming.replay.elements import PageRequest
from webapp.history.upkeep import extent_in_words
from webapp.layers.drawing import parse_box
from webapp.models import Stream
from webapp.words.refusals import Refused

US = 1_000_000
# The year 9999; later times cannot be told as text.
LATEST_US = 253_402_300_799 * US


def replayed_streams() -> list[Stream]:
    """Return the streams that can be replayed: of geographic spaces, whose elements are stored or were."""
    streams = Stream.objects.select_related("space")
    return [one for one in streams if one.space.parsed.geographic and (one.stored or extent_in_words(one))]


def replayed_stream(name: str) -> Stream:
    """Return a stream that can be replayed; raise Refused if there is none of this name."""
    streams = {stream.name: stream for stream in replayed_streams()}
    if name not in streams:
        text = gettext("a replay must be of a stream whose elements are stored: %(streams)s; got %(name)s")
        names = ", ".join(streams) or gettext("(none yet)")
        raise Refused("stream", text % {"streams": names, "name": f"{name!r:.80}"})
    return streams[name]


def life_s(stream: Stream) -> float:
    """Return for how long a replay shows an object that is not heard again: the time to live, if that is shorter."""
    return min(stream.ttl_s or settings.REPLAY_LIFE_S, settings.REPLAY_LIFE_S)


def wanted(stream: Stream, given: Mapping[str, str]) -> PageRequest:
    """Return what a page of a stream is asked for.

    Raises
    ------
    Refused
        Where a parameter breaks a rule.
    """
    check_names(given, ("bbox", "from_us", "to_us", "scene", "step_us"))
    from_us, to_us = span(given)
    step_us = whole("step_us", given.get("step_us", "0"))
    box, space = parse_box(given.get("bbox", "")), stream.space.parsed
    corners = space.box([box.west, box.south], [box.east, box.north])
    return PageRequest(
        stream.name, corners, from_us, to_us, round(life_s(stream) * US), given.get("scene") == "1", step_us
    )


def span(given: Mapping[str, str]) -> tuple[int, int]:
    """Return the span of a request, in microseconds since 1970 UTC; raise Refused if it is none."""
    from_us, to_us = (whole(name, given.get(name, "")) for name in ("from_us", "to_us"))
    if from_us >= to_us:
        raise Refused(
            "fields",
            gettext("from_us must be before to_us; got %(from_us)s and %(to_us)s")
            % {"from_us": from_us, "to_us": to_us},
        )
    return from_us, to_us


def seconds(given: Mapping[str, str]) -> tuple[int, int]:
    """Return the span of a request, widened to full seconds: the clock of answers goes in these."""
    from_us, to_us = span(given)
    return from_us // US * US, -(-to_us // US) * US


def whole(name: str, text: str) -> int:
    """Return a parameter that is a whole number; raise Refused if it is none."""
    if not (text.isascii() and text.isdigit() and int(text) <= LATEST_US):
        raise Refused(
            "fields",
            gettext("%(name)s must be a whole number of microseconds; got %(text)s")
            % {"name": name, "text": f"{text!r:.40}"},
        )
    return int(text)


def check_names(given: Mapping[str, str], names: tuple[str, ...]) -> None:
    """Raise Refused if a request has other parameters than these."""
    if unknown := sorted(set(given) - set(names)):
        raise Refused(
            "fields",
            gettext("the parameters are %(names)s; got %(unknown)s")
            % {"names": ", ".join(names), "unknown": f"{', '.join(unknown):.200}"},
        )

"""Read the question of a request for a report: its stream, area, span and terms, checked against the database."""

import math
from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow.compute as pc
import shapely
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.errors import LookoutError
from streaming.kinds.area_documents import parse_area_value, shape_of
from streaming.layers import InvalidLayer
from streaming.reports import (
    Area,
    InvalidReport,
    ReportTerms,
    box_area,
    drawn_area,
    polygon_area,
    ring_area,
    shape_area,
)
from streaming.reports.answers import ReportRequest
from streaming.reports.stops import MOST_STOP_US
from streaming.time_zones import is_time_zone
from webapp.history.questions import parse_span
from webapp.history.upkeep import extent_in_words
from webapp.layers.drawing import TABLES, parse_box
from webapp.layers.versions import space_of
from webapp.models import Stream
from webapp.models.layers import layer_store
from webapp.queries.queries import visible
from webapp.rights.access import Asker, rights_of
from webapp.words.refusals import Refused

US = 1_000_000
REPORTS = ("objects", "visits", "days", "stops", "way")
FORMATS = ("json", "csv")
AREAS = ("bbox", "polygon", "query", "layer")
FIELDS = (
    *AREAS,
    "report",
    "format",
    "from",
    "to",
    "zone",
    "feature",
    "key",
    "gap_s",
    "fastest_mps",
    "stop_m",
    "stop_s",
)
DEFAULT_GAP_S = 600.0
# What no ship, bus or aircraft exceeds, by the icon of its stream.
FASTEST_MPS = {"ship": 40.0, "bus": 50.0}
DEFAULT_FASTEST_MPS = 350.0
MOST_GAP_S = 366 * 86_400.0
MOST_STOP_M = 100_000.0


def question(user: Asker, name: str, given: Mapping[str, str]) -> ReportRequest:
    """Return the question of a request.

    Parameters
    ----------
    user : User
    name : str
        Of the stream.
    given : mapping of str to str
        The parameters of the request, see docs/reports.md.

    Raises
    ------
    Refused
        ``stream``, ``query`` or ``layer`` where there is none, ``fields`` where a parameter breaks a rule.
    """
    if unknown := sorted(set(given) - set(FIELDS)):
        raise Refused(
            "fields",
            gettext("a report has the parameters %(fields)s; got %(unknown)s")
            % {"fields": ", ".join(FIELDS), "unknown": f"{', '.join(unknown):.200}"},
        )
    stream = _stream(name)
    report, form = _choice(given, "report", REPORTS), _choice(given, "format", FORMATS)
    if report == "way" and not given.get("key"):
        raise Refused("fields", _("the report way needs key, the key of an object; got none"))
    try:
        terms = ReportTerms(
            _span(given),
            _area(user, given, stream),
            _zone(given.get("zone") or "UTC"),
            round(US * _number(given, "gap_s", stream.ttl_s or DEFAULT_GAP_S, 0.001, MOST_GAP_S)),
            _number(given, "fastest_mps", FASTEST_MPS.get(stream.icon, DEFAULT_FASTEST_MPS), 0.001, 1e9),
            _number(given, "stop_m", 100.0, 0.001, MOST_STOP_M),
            round(US * _number(given, "stop_s", 600.0, 0.001, MOST_STOP_US / US)),
        )
    except LookoutError as error:
        raise Refused("fields", str(error)) from None
    return ReportRequest(name, stream.space.parsed, terms, report, form, given.get("key") or None)


def _stream(name: str) -> Stream:
    stream = Stream.objects.select_related("space").filter(name=name).first()
    if stream is None or not (stream.stored or extent_in_words(stream)):
        stored = ", ".join(Stream.objects.filter(stored=True).values_list("name", flat=True)) or gettext("(none yet)")
        raise Refused(
            "stream",
            gettext("a report must be of a stream whose elements are stored: %(stored)s; got %(name)s")
            % {"stored": stored, "name": f"{name!r:.80}"},
        )
    if not stream.space.parsed.geographic:
        raise Refused(
            "stream",
            gettext("a report must be of a stream in a geographic space; got %(name)s of %(space_id)s")
            % {"name": f"{name!r}", "space_id": stream.space_id},
        )
    return stream


def _choice(given: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    value = given.get(name) or choices[0]
    if value not in choices:
        raise Refused(
            "fields",
            gettext("%(name)s must be one of %(choices)s; got %(value)s")
            % {"name": name, "choices": ", ".join(choices), "value": f"{value!r:.80}"},
        )
    return value


def _span(given: Mapping[str, str]) -> tuple[int, int]:
    for name in ("from", "to"):
        if not given.get(name):
            raise InvalidReport("%(name)s must be a time in ISO 8601, or seconds since 1970 UTC; got none", name=name)
    start, stop = parse_span({name: _seconds(given[name]) for name in ("from", "to")})
    assert start is not None and stop is not None  # both are given
    if stop - start > (longest := settings.REPORT_DAYS * 86_400 * US):
        days = (stop - start) / 86_400 / US
        raise InvalidReport(
            "a report must span at most %(longest)s days; got %(days)s",
            longest=longest // 86_400 // US,
            days=f"{days:,.1f}",
        )
    return start, stop


def _seconds(text: str) -> float | str:
    """Return a number of seconds as a number; leave other texts as they are."""
    try:
        return float(text)
    except ValueError:
        return text


def _zone(name: str) -> ZoneInfo:
    if not is_time_zone(name):
        raise InvalidReport(
            "zone must be the name of a time zone, as in the IANA database, such as Europe/Helsinki; got %(name)s",
            name=f"{name!r:.80}",
        )
    return ZoneInfo(name)


def _number(given: Mapping[str, str], name: str, default: float, least: float, most: float) -> float:
    text = given.get(name) or ""
    try:
        value = float(text) if text else default
    except ValueError:
        value = math.nan
    if not least <= value <= most:
        raise InvalidReport(
            "%(name)s must be a number from %(least)g to %(most)g; got %(text)s",
            name=name,
            least=least,
            most=most,
            text=f"{text!r:.80}",
        )
    return value


def _area(user: Asker, given: Mapping[str, str], stream: Stream) -> Area | None:
    """Return the area that a request gives in one of several ways; None if it gives none."""
    chosen = [name for name in AREAS if given.get(name)]
    if len(chosen) > 1:
        raise Refused(
            "fields",
            gettext("a report has at most one of %(areas)s; got %(chosen)s")
            % {"areas": ", ".join(AREAS), "chosen": ", ".join(chosen)},
        )
    if not chosen:
        return None
    value = given[chosen[0]]
    if chosen == ["bbox"]:
        box = parse_box(value)
        return box_area(box.west, box.south, box.east, box.north)
    if chosen == ["polygon"]:
        return polygon_area(value)
    if chosen == ["query"]:
        return _area_of_query(user, value)
    return _area_of_feature(user, value, given.get("feature"), stream)


def _area_of_query(user: Asker, text: str) -> Area:
    """Return the area of a saved query whose range is fixed."""
    query = visible(user, int(text) if text.isascii() and text.isdigit() else -1)
    plan: dict[str, Any] = query.plan
    if ring := plan.get("polygon"):
        return ring_area(ring)
    box = None if plan.get("around") else plan.get("compare") or plan.get("target") or plan.get("area")
    if box is None:
        raise Refused(
            "query",
            gettext("the query of a report must have an area that stays where it is; got %(name)s")
            % {"name": f"{query.name!r}"},
        )
    parsed = query.space.parsed
    if shape := shape_of(parse_area_value(box, "area", parsed)[1]):
        return drawn_area(shape)
    corners = parsed.box(box["lo"], box["hi"])
    west, south, east, north = np.clip(
        corners[[0, 1, parsed.n, parsed.n + 1]], (-180, -90, -180, -90), (180, 90, 540, 90)
    )
    return box_area(west, south, 180.0 if np.isinf(corners[parsed.n]) else east, north)


def _area_of_feature(user: Asker, name: str, key: str | None, stream: Stream) -> Area:
    """Return the area of a layer's feature."""
    layer = rights_of(user).layers().filter(name=name, version__isnull=False, space=stream.space).first()
    if layer is None:
        raise Refused(
            "layer",
            gettext("layer must be the name of a layer in %(space_id)s; got %(name)s")
            % {"space_id": stream.space_id, "name": f"{name!r:.80}"},
        )
    assert layer.version is not None  # the selection is of layers that have one
    try:
        table, _ = TABLES.get(layer_store(), layer.name, layer.version, space_of(layer))
    except InvalidLayer as error:
        raise Refused("layer", str(error)) from None
    found = table.filter(pc.equal(table["key"], key or ""))
    if not found.num_rows:
        raise Refused(
            "layer",
            gettext("feature must be the key of a feature of layer %(name)s; got %(key)s")
            % {"name": f"{name!r}", "key": f"{key!r:.80}"},
        )
    return shape_area(shapely.from_wkb(found["geometry"][0].as_py()))

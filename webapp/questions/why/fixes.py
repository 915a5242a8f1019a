"""Fixes of objects: as the engine tells them, as an event has them, and as the history has them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import orjson
from django.conf import settings

from streaming.elements import bounds_document, bounds_of, box_of_document
from streaming.explaining import Subject
from streaming.history import StoredTables, stored
from streaming.spaces import Space
from webapp.models import Event, Stream

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECONDS = timedelta(microseconds=1)
# A stored report that is farther than this from the time that is asked for says nothing about it.
NEAR_S = 3_600.0
MOST_STORED = 10_000


def microseconds(at: datetime) -> int:
    """Return a time in microseconds since 1970 UTC."""
    return (at - EPOCH) // MICROSECONDS


def instant(time_us: int) -> str:
    """Return a time in microseconds since 1970 UTC in ISO 8601."""
    return (EPOCH + timedelta(microseconds=time_us)).isoformat()


def subject_of_row(stream: str, row: dict[str, Any], space: Space) -> Subject:
    """Return the element of a row of an answer, as `results.json_rows` has it."""
    return Subject.of(stream, row["key"], row["time_us"], box_of_document(row["bounds"]), row["properties"], space)


def subject_of_event(event: Event, space: Space) -> Subject | None:
    """Return the element of an event; None if it is about no object, such as those of aggregates."""
    if not event.key or not event.bounds:
        return None
    about = event.query.stream, event.key, microseconds(event.time)
    return Subject.of(*about, box_of_document(event.bounds), event.properties, space)


def stored_subject(stream: Stream, key: str, before_us: int | None = None) -> Subject | None:
    """Return the newest stored report of an object, or the one that was in force at a time; None if none is known."""
    space = stream.space.parsed
    tables = StoredTables(settings.LAYERS_DIR, settings.HISTORY_DIR, space)
    rows = tables.get(stored(stream.name), key, MOST_STORED).rows if stream.stored else None
    if rows is None or not rows.num_rows:
        return None
    times_us = rows["time_us"].to_numpy()
    place = len(times_us) - 1 if before_us is None else int(np.searchsorted(times_us, before_us, "right")) - 1
    if place < 0 or (before_us is not None and before_us - times_us[place] > NEAR_S * 1e6):
        return None
    row = rows.slice(place, 1)
    properties = orjson.loads(row["properties"][0].as_py() or "{}")
    geometry = row["geometry"][0].as_py()
    bounds = bounds_of(row["bounds"])[0]
    return Subject.of(stream.name, key, int(times_us[place]), bounds, properties, space, geometry)


def fix_document(subject: Subject, source: str) -> dict[str, Any]:
    """Return a fix as a JSON object; `source` says where it is from: ``engine``, ``event`` or ``history``."""
    lon, lat = subject.place if subject.space.geographic else (None, None)
    time_us = subject.table["time_us"][0].as_py()
    return {
        "stream": subject.stream,
        "key": subject.key,
        "time": instant(time_us),
        "lon": lon,
        "lat": lat,
        "bounds": bounds_document(subject.bounds[0].tolist()),
        "properties": subject.properties,
        "source": source,
    }

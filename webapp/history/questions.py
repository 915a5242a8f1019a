"""Questions of users to tables: stored elements, and layers; answered in a process of its own."""

import threading
from datetime import UTC, datetime
from typing import Any

import orjson
from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext

from streaming.errors import LookoutError
from streaming.history import InvalidQuestion, Table, parse_table
from streaming.history.answers import AnswerLimits, HistoryQuestion, answered
from streaming.kinds.parts import parse_box
from webapp.history.upkeep import MICROSECONDS, extent_in_words
from webapp.machine.children import CHILDREN
from webapp.models import Space, Stream
from webapp.rights.access import Asker, Rights, rights_of
from webapp.words.refusals import Refused

DEFAULT_ROWS, MAX_ROWS = 1_000, 10_000
# A question begins to count once a process is there for it; a new one takes some seconds to start.
START_S = 15.0


def question(user: Asker, kind: str, fields: dict[str, Any]) -> HistoryQuestion:
    """Return the checked question of a message of a user.

    Raises
    ------
    Refused
        ``table`` where a table is unknown or two lie in different spaces, ``fields`` where a field is not valid.
    """
    names = ("left", "right") if kind == "table.join" else ("table",)
    tables = tuple(_table(fields[name]) for name in names)
    rights = rights_of(user)
    spaces = [_space_of(table, rights) for table in tables]
    if len({space.pk for space in spaces}) > 1:
        raise Refused(
            "table",
            gettext("the tables of a join must lie in one space; got %(value)s")
            % {"value": ", ".join(s.pk for s in spaces)},
        )
    space = spaces[0].parsed
    given = {name: value for name, value in fields.items() if name not in names}
    try:
        given["limit"] = given.get("limit", DEFAULT_ROWS)
        if "box" in given:
            given["box"] = parse_box(given["box"], "box", space)
        if "span" in given:
            given["span"] = parse_span(given["span"])
    except LookoutError as error:
        raise Refused("fields", str(error)) from None
    return HistoryQuestion(kind, space, tables, given)


def answer(asked: HistoryQuestion, ended: threading.Event) -> dict[str, Any]:
    """Return the message that answers a question, without its id. Call it in a separate thread, in a turn.

    Parameters
    ----------
    asked : HistoryQuestion
    ended : threading.Event
        Set once the connection has ended; the answer then stops.

    Raises
    ------
    Refused
        ``table`` where the question takes too much time, memory or too many rows.
    """
    seconds = settings.TABLE_ANSWER_S
    limits = AnswerLimits(settings.TABLE_JOIN_ROWS, settings.TABLE_JOIN_BYTES, settings.TABLE_ANSWER_BYTES, seconds)
    folders = settings.LAYERS_DIR, settings.HISTORY_DIR
    wanted = lambda: not ended.is_set()  # noqa: E731
    try:
        rows, truncated = CHILDREN.run(
            answered, (asked, *folders, limits), settings.WORK_MEMORY_BYTES, seconds + START_S, wanted
        )
    except LookoutError as error:
        raise Refused("table", error) from None
    return {"type": "table.rows", "rows": orjson.Fragment(rows), "truncated": truncated}


def parse_span(document: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the ends of a span ``{"from": ..., "to": ...}`` in microseconds since 1970 UTC; None where one is absent.

    Each end is a text in ISO 8601 or a number of seconds since 1970 UTC.

    Raises
    ------
    InvalidQuestion
        When it is not a span.

    Examples
    --------
    >>> parse_span({"from": "1970-01-01T00:00:01Z", "to": 2.5})
    (1000000, 2500000)
    """
    if set(document) - {"from", "to"}:
        raise InvalidQuestion(
            'span must be an object of the form {"from": ..., "to": ...}; got %(document)s',
            document=f"{document!r:.80}",
        )
    start, stop = (_instant(document.get(name)) for name in ("from", "to"))
    if start is not None and stop is not None and start > stop:
        raise InvalidQuestion("span: from must not be after to; got %(document)s", document=f"{document!r:.80}")
    return start, stop


def _instant(value: Any) -> int | None:
    if value is None:
        return None
    try:
        if isinstance(value, str):
            instant = datetime.fromisoformat(value)
            instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        else:
            instant = datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidQuestion(
            "span: a time must be ISO 8601, or seconds since 1970 UTC, in the years 1 to 9999; got %(value)s",
            value=f"{value!r:.80}",
        ) from None
    return round((instant - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * MICROSECONDS)


def _table(document: Any) -> Table:
    try:
        return parse_table(document)
    except InvalidQuestion as error:
        raise Refused("fields", str(error)) from None


def _space_of(table: Table, rights: Rights) -> Space:
    """Return the space in which a table lies; raise Refused if there is no such table."""
    there: QuerySet[Any] = (
        rights.layers().filter(version__isnull=False) if table.source == "layer" else Stream.objects.all()
    )
    found = there.select_related("space").filter(name=table.name).first()
    if found is None or (table.source == "stored" and not found.stored and not extent_in_words(found)):
        names = [row.name for row in there if table.source == "layer" or row.stored]
        what = (
            gettext("the name of a layer") if table.source == "layer" else gettext("a stream whose elements are stored")
        )
        raise Refused(
            "table",
            gettext("%(source)s must be %(what)s: %(value)s; got %(name)s")
            % {
                "source": table.source,
                "what": what,
                "value": ", ".join(names) or gettext("(none yet)"),
                "name": f"{table.name!r}",
            },
        )
    return found.space

"""Messages from clients: their types, their fields, and the checks of the fields."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.functional import Promise, lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.kinds.join.partners import PREDICATES
from streaming.kinds.parts import MAX_WHERE_CHARACTERS
from streaming.kinds.sketch.reading import MAX_CHARACTERS as MAX_QUESTION_CHARACTERS
from webapp.history import MAX_ROWS
from webapp.hub.subscriptions import FORMATS
from webapp.incidents import PAGE_INCIDENTS, STATES
from webapp.models import Severity
from webapp.models.looks import QUERY_LOOKS, is_query_look
from webapp.models.teams import MAX_ADDRESS_CHARACTERS, MOST_SHOWN
from webapp.query_list import PAGE_QUERIES
from webapp.refusals import Refused
from webapp.text import read_json

MAX_NAME_CHARACTERS = 120
MAX_STREAMS = 32
MAX_QUERIES = 1_000
MAX_NUMBER = 2**53 - 1
MAX_KEY_CHARACTERS = 1_000
MAX_SAMPLE = 1_000
MAX_COMMENT_CHARACTERS = 2_000
MOST_HOURS = 366 * 24


# What a client may call a message, so that the replies repeat it.
Reference = str | int | None


@dataclass(frozen=True)
class Field:
    """One field of a message: its rule in words, the check of a value, whether it is required, and its default."""

    rule: str | Promise
    accepts: Callable[[Any], bool]
    required: bool = True
    default: Any = None


def rule_of(text: str, **values: Any) -> str | Promise:
    """Return a rule with values, which is translated where it is shown."""
    return lazy(lambda: gettext(text) % values, str)()


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= MAX_NAME_CHARACTERS


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_NUMBER


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_QUERIES and all(_is_number(number) for number in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_format(value: Any) -> bool:
    return value in FORMATS


def _is_held(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"epoch", "batch"}:
        return False
    epoch, batch = value["epoch"], value["batch"]
    number = isinstance(batch, int) and not isinstance(batch, bool) and 0 <= batch <= MAX_NUMBER
    return number and isinstance(epoch, str) and len(epoch) <= MAX_NAME_CHARACTERS


def _is_search(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME_CHARACTERS


def _is_position(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"mine", "query"}:
        return False
    return isinstance(value["mine"], bool) and _is_number(value["query"])


def _is_page_size(value: Any) -> bool:
    return _is_number(value) and value <= PAGE_QUERIES


def _is_watched(value: Any) -> bool:
    return (
        isinstance(value, dict) and len(value) <= MAX_STREAMS and all(isinstance(keys, list) for keys in value.values())
    )


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_STREAMS and all(isinstance(name, str) for name in value)


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_KEY_CHARACTERS


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_KEY_CHARACTERS


def _is_sign(value: Any) -> bool:
    return value in ("+", "-")


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_rows(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_ROWS


def _is_where(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= MAX_WHERE_CHARACTERS


def _is_properties(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_SAMPLE and all(isinstance(one, str) for one in value)


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_SAMPLE and all(isinstance(one, dict) for one in value)


def _is_question(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_QUESTION_CHARACTERS


def _is_predicate(value: Any) -> bool:
    return value in PREDICATES


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_severity(value: Any) -> bool:
    return value == "" or value in Severity.values


def _is_some_severity(value: Any) -> bool:
    return value in Severity.values


def _is_state(value: Any) -> bool:
    return value in STATES


def _is_incidents(value: Any) -> bool:
    return _is_number(value) and value <= PAGE_INCIDENTS


def _is_comment(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= MAX_COMMENT_CHARACTERS


def _is_person(value: Any) -> bool:
    return value is None or (isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARACTERS)


def _is_team(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ADDRESS_CHARACTERS


def _is_layers(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= MAX_QUERIES and all(_is_key(name) for name in value)


def _is_hours(value: Any) -> bool:
    return _is_number(value) and value <= MOST_HOURS


def _is_shown(value: Any) -> bool:
    return _is_numbers(value) and 0 < len(value) <= MOST_SHOWN


def _is_instant(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


NAME = Field(
    rule_of("a text of 1 to %(max_name_characters)s characters", max_name_characters=MAX_NAME_CHARACTERS), _is_name
)
QUERY = Field(_("the number of a query"), _is_number)
ONE_QUERY = Field(QUERY.rule, _is_number, required=False)
QUERIES = Field(
    rule_of("a list of at most %(max_queries)s numbers of queries", max_queries=MAX_QUERIES),
    _is_numbers,
    required=False,
)
PLAN = Field(_("a plan, a JSON object"), _is_object)
AREA = Field(_('an object of the form {"lo": [...], "hi": [...]}'), _is_object)
STREAMS = Field(rule_of("a list of at most %(max_streams)s names of streams", max_streams=MAX_STREAMS), _is_names)
WHOLE = Field(STREAMS.rule, _is_names, required=False, default=[])
WATCHED = Field(
    rule_of("an object of at most %(max_streams)s lists of keys by the names of streams", max_streams=MAX_STREAMS),
    _is_watched,
    required=False,
    default={},
)
FORMAT = Field(rule_of("one of %(formats)s", formats=", ".join(FORMATS)), _is_format, required=False, default="json")
JOINED = Field(_("true or false"), _is_flag, required=False, default=False)
HELD = Field(_('an object of the form {"epoch": text, "batch": number}'), _is_held, required=False)
SEARCH = Field(
    rule_of("a text of at most %(max_name_characters)s characters", max_name_characters=MAX_NAME_CHARACTERS),
    _is_search,
    required=False,
    default="",
)
SPACES = Field(
    rule_of("a list of at most %(max_streams)s names of spaces", max_streams=MAX_STREAMS), _is_names, required=False
)
AFTER = Field(_('an object of the form {"mine": true or false, "query": number}'), _is_position, required=False)
PAGE_SIZE = Field(
    rule_of("a whole number from 1 to %(page_queries)s", page_queries=PAGE_QUERIES),
    _is_page_size,
    required=False,
    default=PAGE_QUERIES,
)
# A field that is absent from an edit keeps its value, so these have no default.
SHARED = Field(_("true or false"), _is_flag, required=False)
SPACE = Field(
    rule_of("a text of at most %(max_name_characters)s characters", max_name_characters=MAX_NAME_CHARACTERS),
    _is_search,
    required=False,
)
TEAM = Field(_("the number of a team, or null"), _is_team, required=False)
SHOWN = Field(_("true or false"), _is_flag)
PAUSED = Field(_("true or false"), _is_flag, required=False)
CONFIRMED = Field(_("true or false"), _is_flag, required=False)
NEW_NAME = Field(NAME.rule, _is_name, required=False)
NEW_PLAN = Field(PLAN.rule, _is_object, required=False)

TABLE = Field(_('a table, {"layer": name} or {"stored": stream}'), _is_object)
KEY = Field(rule_of("a text of 1 to %(max_key_characters)s characters", max_key_characters=MAX_KEY_CHARACTERS), _is_key)
ROWS = Field(rule_of("a whole number from 1 to %(max_rows)s", max_rows=MAX_ROWS), _is_rows, required=False)
BOX = Field(AREA.rule, _is_object, required=False)
SPAN = Field(_('an object of the form {"from": ..., "to": ...}'), _is_object, required=False)
PAST = Field(SPAN.rule, _is_object)
PREDICATE = Field(rule_of("one of %(predicates)s", predicates=", ".join(PREDICATES)), _is_predicate, required=False)
DISTANCE = Field(_("a finite number that is not negative"), _is_amount, required=False)

SEVERITIES = ", ".join(Severity.values)
SEVERITY = Field(rule_of('"" or one of %(severities)s', severities=SEVERITIES), _is_severity, required=False)
LOOK = Field(rule_of("a whole number from 0 to %(most)s, or null", most=QUERY_LOOKS - 1), is_query_look, False)
ONE_SEVERITY = Field(rule_of("one of %(severities)s", severities=SEVERITIES), _is_some_severity, required=False)
STATE = Field(rule_of("one of %(states)s", states=", ".join(STATES)), _is_state, required=False)
MINE = Field(_("true or false"), _is_flag, required=False, default=False)
INCIDENT = Field(_("the number of an incident"), _is_number)
OLDER = Field(INCIDENT.rule, _is_number, required=False)
INCIDENTS = Field(
    rule_of("a whole number from 1 to %(page_incidents)s", page_incidents=PAGE_INCIDENTS),
    _is_incidents,
    required=False,
    default=PAGE_INCIDENTS,
)
PERSON = Field(_("the name of a user, or null"), _is_person)
COMMENT = Field(
    rule_of("a text of 1 to %(max_comment_characters)s characters", max_comment_characters=MAX_COMMENT_CHARACTERS),
    _is_comment,
)
INSTANT = Field(_("a time in ISO 8601 with its zone"), _is_instant)

STREAM = Field(_("the name of a stream"), _is_key)
GROUP = Field(
    rule_of("a text of at most %(max_key_characters)s characters", max_key_characters=MAX_KEY_CHARACTERS), _is_text
)
SIGN = Field(_("+ or -"), _is_sign)
TIME_US = Field(_("a whole number of microseconds since 1970 UTC"), _is_time)
PARTNER = Field(GROUP.rule, _is_text, required=False, default="")
VIEW = Field(_("the number of a saved view"), _is_number)
ADDRESS = Field(
    rule_of("a text of at most %(max_address_characters)s characters", max_address_characters=MAX_ADDRESS_CHARACTERS),
    _is_address,
)
NEW_ADDRESS = Field(ADDRESS.rule, _is_address, required=False)
LAYERS = Field(
    rule_of("a list of at most %(max_queries)s names of layers", max_queries=MAX_QUERIES), _is_layers, required=False
)
LINK = Field(_("the number of a share link"), _is_number)
SHOWN_QUERIES = Field(rule_of("a list of 1 to %(most_shown)s numbers of queries", most_shown=MOST_SHOWN), _is_shown)
HOURS = Field(rule_of("a whole number from 1 to %(most_hours)s", most_hours=MOST_HOURS), _is_hours)

QUESTION = Field(
    rule_of(
        "a text of at most %(max_question_characters)s characters", max_question_characters=MAX_QUESTION_CHARACTERS
    ),
    _is_question,
    required=False,
)
WHERE = Field(
    rule_of("CQL2 text of at most %(max_where_characters)s characters", max_where_characters=MAX_WHERE_CHARACTERS),
    _is_where,
)
PROPERTIES = Field(rule_of("a list of at most %(max_sample)s names", max_sample=MAX_SAMPLE), _is_properties)
OBJECTS = Field(rule_of("a list of at most %(max_sample)s objects", max_sample=MAX_SAMPLE), _is_objects)

FIELDS: dict[str, dict[str, Field]] = {
    "filter.check": {"where": WHERE, "names": PROPERTIES, "objects": OBJECTS},
    "query.register": {
        "name": NAME,
        "plan": PLAN,
        "shared": SHARED,
        "team": TEAM,
        "severity": SEVERITY,
        "look": LOOK,
        "confirmed": CONFIRMED,
    },
    "query.edit": {
        "query": QUERY,
        "name": NEW_NAME,
        "plan": NEW_PLAN,
        "shared": SHARED,
        "team": TEAM,
        "paused": PAUSED,
        "severity": SEVERITY,
        "look": LOOK,
        "confirmed": CONFIRMED,
    },
    "query.cancel": {"query": QUERY},
    "examples.show": {"shown": SHOWN},
    "query.list": {"search": SEARCH, "spaces": SPACES, "after": AFTER, "limit": PAGE_SIZE},
    "query.subscribe": {"query": ONE_QUERY, "queries": QUERIES, "format": FORMAT, "joined": JOINED, "held": HELD},
    "query.unsubscribe": {"query": ONE_QUERY, "queries": QUERIES},
    "query.snapshot": {"query": QUERY},
    "incident.list": {
        "state": STATE,
        "severity": ONE_SEVERITY,
        "query": ONE_QUERY,
        "mine": MINE,
        "after": OLDER,
        "limit": INCIDENTS,
    },
    "incident.get": {"incident": INCIDENT},
    "incident.acknowledge": {"incident": INCIDENT},
    "incident.assign": {"incident": INCIDENT, "to": PERSON},
    "incident.comment": {"incident": INCIDENT, "text": COMMENT},
    "incident.snooze": {"incident": INCIDENT, "until": INSTANT},
    "incident.wake": {"incident": INCIDENT},
    "incident.close": {"incident": INCIDENT},
    "why.object": {"query": QUERY, "stream": STREAM, "key": KEY},
    "why.event": {"query": QUERY, "key": GROUP, "sign": SIGN, "time_us": TIME_US, "partner": PARTNER},
    "why.incident": {"incident": INCIDENT},
    "saved.list": {},
    "saved.add": {"name": NAME, "address": ADDRESS, "queries": QUERIES, "layers": LAYERS, "team": TEAM},
    "saved.edit": {
        "view": VIEW,
        "name": NEW_NAME,
        "address": NEW_ADDRESS,
        "queries": QUERIES,
        "layers": LAYERS,
        "team": TEAM,
    },
    "saved.delete": {"view": VIEW},
    "link.list": {},
    "link.add": {"name": NAME, "queries": SHOWN_QUERIES, "address": NEW_ADDRESS, "hours": HOURS},
    "link.revoke": {"link": LINK},
    "roles.subscribe": {"query": QUERY},
    "roles.unsubscribe": {"query": QUERY},
    "regions.subscribe": {"space": SPACE},
    "regions.unsubscribe": {"space": SPACE},
    "view.subscribe": {
        "streams": STREAMS,
        "area": AREA,
        "whole": WHOLE,
        "watched": WATCHED,
        "format": FORMAT,
        "joined": JOINED,
    },
    "view.unsubscribe": {},
    "sketch.ask": {"plan": NEW_PLAN, "text": QUESTION, "format": FORMAT},
    "sketch.end": {"query": QUERY},
    "backtest.start": {"plan": PLAN, "span": PAST},
    "backtest.cancel": {},
    "table.get": {"table": TABLE, "key": KEY, "limit": ROWS},
    "table.query": {"table": TABLE, "box": BOX, "span": SPAN, "limit": ROWS},
    "table.join": {
        "left": TABLE,
        "right": TABLE,
        "box": BOX,
        "span": SPAN,
        "predicate": PREDICATE,
        "distance": DISTANCE,
        "limit": ROWS,
    },
}


def read_document(text: str) -> dict[str, Any]:
    """Return a message's JSON text as a dict.

    Raises
    ------
    Refused
        ``json`` where the text is not a JSON object. NaN and infinities, which JSON does not have, are refused too, and
        so are texts that cannot be stored.
    """
    try:
        document = read_json(text)
    except (ValueError, RecursionError) as error:
        raise Refused("json", gettext("a message must be a JSON object; %(error)s") % {"error": error}) from None
    if not isinstance(document, dict):
        raise Refused("json", gettext("a message must be a JSON object; got %(text)s") % {"text": f"{text!r:.80}"})
    return document


def reference_of(document: dict[str, Any]) -> Reference:
    """Return the id that replies to a message repeat; None unless it is a short text or an integer."""
    reference = document.get("id")
    short = isinstance(reference, str) and len(reference) <= MAX_NAME_CHARACTERS
    return reference if short or isinstance(reference, int) else None


def read_fields(document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a message's type and its fields; absent fields get their default, if they have one.

    Raises
    ------
    Refused
        ``type`` or ``fields``, with the rule that the message breaks, and the value.
    """
    kind = document.get("type")
    if not isinstance(kind, str) or kind not in FIELDS:
        raise Refused(
            "type",
            gettext("type must be one of %(fields)s; got %(kind)s")
            % {"fields": ", ".join(FIELDS), "kind": f"{kind!r:.80}"},
        )
    fields = FIELDS[kind]
    if unknown := sorted(set(document) - set(fields) - {"type", "id"}):
        names = ", ".join(fields) or gettext("(none)")
        raise Refused(
            "fields",
            gettext("%(kind)s has the fields %(names)s; got the unknown %(unknown)s")
            % {"kind": kind, "names": names, "unknown": f"{', '.join(unknown):.80}"},
        )
    values = {}
    for name, field in fields.items():
        if name not in document:
            if field.required:
                raise Refused(
                    "fields",
                    gettext("%(kind)s needs %(name)s, %(rule)s; got none")
                    % {"kind": kind, "name": name, "rule": field.rule},
                )
            if field.default is not None:
                values[name] = field.default
        elif not field.accepts(document[name]):
            raise Refused(
                "fields",
                gettext("%(name)s must be %(rule)s; got %(document)s")
                % {"name": name, "rule": field.rule, "document": f"{document[name]!r:.80}"},
            )
        else:
            values[name] = document[name]
    return kind, values

"""Messages from clients: their types, their fields, and the checks of the fields."""

from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.kinds.join.partners import PREDICATES
from streaming.kinds.parts import MAX_WHERE_CHARACTERS
from streaming.kinds.sketch.reading import MAX_CHARACTERS as MAX_QUESTION_CHARACTERS
from webapp.alarms.incidents import PAGE_INCIDENTS, STATES
from webapp.consumers.fields import (
    FLAG,
    INSTANT,
    Field,
    choice,
    has_just,
    is_number,
    is_object,
    is_text,
    is_whole,
    listed,
    number_of,
    or_null,
    rule_of,
    some_text,
    text,
    up_to,
)
from webapp.history.questions import MAX_ROWS
from webapp.hub.subscriptions import FORMATS
from webapp.models import Severity
from webapp.models.looks import QUERY_LOOKS, is_query_look
from webapp.models.teams import MAX_ADDRESS_CHARACTERS, MOST_SHOWN
from webapp.queries.listing import PAGE_QUERIES
from webapp.words.refusals import Refused
from webapp.words.text import read_json

MAX_NAME_CHARACTERS = 120
MAX_STREAMS = 32
MAX_QUERIES = 1_000
MAX_KEY_CHARACTERS = 1_000
MAX_SAMPLE = 1_000
MAX_COMMENT_CHARACTERS = 2_000
MOST_HOURS = 366 * 24

# What a client may call a message, so that the replies repeat it.
Reference = str | int | None


NAME = some_text(MAX_NAME_CHARACTERS)
NEW_NAME = NAME.optional()
SEARCH = text(MAX_NAME_CHARACTERS).optional("")
SPACE = text(MAX_NAME_CHARACTERS).optional()
KEY = some_text(MAX_KEY_CHARACTERS, stripped=False)
GROUP = text(MAX_KEY_CHARACTERS)
PARTNER = GROUP.optional("")
STREAM = Field(_("the name of a stream"), KEY.accepts)
COMMENT = some_text(MAX_COMMENT_CHARACTERS)
ADDRESS = text(MAX_ADDRESS_CHARACTERS)
NEW_ADDRESS = ADDRESS.optional()
QUESTION = text(MAX_QUESTION_CHARACTERS).optional()
WHERE = Field(
    rule_of("CQL2 text of at most %(most)s characters", most=MAX_WHERE_CHARACTERS),
    some_text(MAX_WHERE_CHARACTERS).accepts,
)
PERSON = or_null(some_text(MAX_NAME_CHARACTERS, stripped=False), _("the name of a user, or null"))

QUERY = number_of(_("the number of a query"))
ONE_QUERY = QUERY.optional()
QUERIES = listed("a list of at most %(most)s numbers of queries", MAX_QUERIES, is_number).optional()
SHOWN_QUERIES = listed("a list of 1 to %(most)s numbers of queries", MOST_SHOWN, is_number, least=1)
TEAM = or_null(number_of(""), _("the number of a team, or null")).optional()
INCIDENT = number_of(_("the number of an incident"))
OLDER = INCIDENT.optional()
VIEW = number_of(_("the number of a saved view"))
LINK = number_of(_("the number of a share link"))
PAGE_SIZE = up_to(PAGE_QUERIES).optional(PAGE_QUERIES)
INCIDENTS = up_to(PAGE_INCIDENTS).optional(PAGE_INCIDENTS)
ROWS = up_to(MAX_ROWS).optional()
HOURS = up_to(MOST_HOURS)
TIME_US = Field(_("a whole number of microseconds since 1970 UTC"), is_whole)
DISTANCE = Field(
    _("a finite number that is not negative"),
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value >= 0,
).optional()

STREAMS = listed("a list of at most %(most)s names of streams", MAX_STREAMS, is_text)
WHOLE = STREAMS.optional([])
SPACES = listed("a list of at most %(most)s names of spaces", MAX_STREAMS, is_text).optional()
LAYERS = listed("a list of at most %(most)s names of layers", MAX_QUERIES, KEY.accepts).optional()
PROPERTIES = listed("a list of at most %(most)s names", MAX_SAMPLE, is_text)
OBJECTS = listed("a list of at most %(most)s objects", MAX_SAMPLE, is_object)
WATCHED = Field(
    rule_of("an object of at most %(most)s lists of keys by the names of streams", most=MAX_STREAMS),
    lambda value: (
        is_object(value) and len(value) <= MAX_STREAMS and all(isinstance(keys, list) for keys in value.values())
    ),
).optional({})

PLAN = Field(_("a plan, a JSON object"), is_object)
NEW_PLAN = PLAN.optional()
AREA = Field(_('an object of the form {"lo": [...], "hi": [...]}'), is_object)
BOX = AREA.optional()
PAST = Field(_('an object of the form {"from": ..., "to": ...}'), is_object)
SPAN = PAST.optional()
TABLE = Field(_('a table, {"layer": name} or {"stored": stream}'), is_object)
HELD = Field(
    _('an object of the form {"epoch": text, "batch": number}'),
    lambda value: has_just(
        value, epoch=text(MAX_NAME_CHARACTERS).accepts, batch=lambda batch: is_whole(batch) and batch >= 0
    ),
).optional()
AFTER = Field(
    _('an object of the form {"mine": true or false, "query": number}'),
    lambda value: has_just(value, mine=FLAG.accepts, query=is_number),
).optional()

# A field that is absent from an edit keeps its value, so these have no default.
CHANGED_FLAG = FLAG.optional()
JOINED = MINE = FLAG.optional(False)
FORMAT = choice(FORMATS).optional("json")
PREDICATE = choice(PREDICATES).optional()
STATE = choice(STATES).optional()
ONE_SEVERITY = choice(Severity.values).optional()
SEVERITY = Field(
    rule_of('"" or one of %(severities)s', severities=", ".join(Severity.values)),
    lambda value: value == "" or value in Severity.values,
).optional()
LOOK = Field(rule_of("a whole number from 0 to %(most)s, or null", most=QUERY_LOOKS - 1), is_query_look).optional()
SIGN = Field(_("+ or -"), lambda value: value in ("+", "-"))

FIELDS: dict[str, dict[str, Field]] = {
    "filter.check": {"where": WHERE, "names": PROPERTIES, "objects": OBJECTS},
    "query.register": {
        "name": NAME,
        "plan": PLAN,
        "shared": CHANGED_FLAG,
        "team": TEAM,
        "severity": SEVERITY,
        "look": LOOK,
        "confirmed": CHANGED_FLAG,
    },
    "query.edit": {
        "query": QUERY,
        "name": NEW_NAME,
        "plan": NEW_PLAN,
        "shared": CHANGED_FLAG,
        "team": TEAM,
        "paused": CHANGED_FLAG,
        "severity": SEVERITY,
        "look": LOOK,
        "confirmed": CHANGED_FLAG,
    },
    "query.cancel": {"query": QUERY},
    "examples.show": {"shown": FLAG},
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

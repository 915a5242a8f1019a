"""The answers of saved queries in the past, as child processes play them; see `streaming.replay`."""

import atexit
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import pyarrow as pa
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.errors import LookoutError
from streaming.kinds.base import Evaluation
from streaming.kinds.registry import kind_of
from streaming.plans import parse_plan
from streaming.replay.sessions import ReplayPlan, Sessions
from streaming.results import frame, result_schema
from streaming.spaces import EARTH, Space, space_document
from webapp.models import Query, Stream
from webapp.queries.queries import visible_among
from webapp.queries.waiting import check_readable, versions_of
from webapp.questions.replay.asking import US, check_names, replayed_streams, seconds, span, whole
from webapp.rights.access import Asker, rights_of
from webapp.rights.fair import REPLAYED_ANSWERS
from webapp.words.refusals import Refused

SESSIONS = Sessions(settings.REPLAY_SESSIONS, settings.REPLAY_IDLE_S, settings.WORK_MEMORY_BYTES)
atexit.register(SESSIONS.end)


def page_of_answers(user: Asker, given: Mapping[str, str]) -> bytes:
    """Return a page of the answers of some queries, as a binary frame of the websocket.

    Parameters
    ----------
    user : User
    given : mapping of str to str
        `queries`, numbers with commas between them; `from_us` and `to_us`; `end_us`, up to when the replay may go;
        `session`, a text by which the client has its pages follow each other; `scene_us`, if only the answers at a time
        are asked for.

    Raises
    ------
    Refused
        Where a parameter breaks a rule.
    InvalidReplay
        Where the answers cannot be played.
    """
    check_names(given, ("queries", "from_us", "to_us", "end_us", "session", "scene_us"))
    (from_us, to_us), name = seconds(given), (user.pk, given.get("session", "")[:100])
    SESSIONS.leave(name, from_us)
    with REPLAYED_ANSWERS.turn(user):
        return _page(user, given, name, (from_us, to_us))


def _page(user: Asker, given: Mapping[str, str], name: Hashable, asked: tuple[int, int]) -> bytes:
    from_us, to_us = asked
    _, end_us = span({"from_us": given["from_us"], "to_us": given.get("end_us", given["to_us"])})
    played = _played(user, _queries(user, given.get("queries", "")), from_us, max(to_us, end_us))
    if not played.queries:
        return _empty(played, to_us)
    session = SESSIONS.of(name, from_us, lambda other: _same(other, played) and other.end_us >= to_us, lambda: played)
    with session.lock:
        if session.until_us != from_us:
            raise Refused(
                "busy",
                gettext("the pages of a session must follow each other; got one from %(from_us)s")
                % {"from_us": from_us},
            )
        if "scene_us" in given:
            at_us = whole("scene_us", given["scene_us"]) // US * US
            return session.scene(at_us, settings.REPLAY_PATIENCE_S)
        limits = settings.REPLAY_ANSWER_ROWS, settings.REPLAY_ANSWER_S, settings.REPLAY_PATIENCE_S
        return session.page(to_us, *limits)


def _same(one: ReplayPlan, other: ReplayPlan) -> bool:
    """Return whether two sessions play the same: a change of the rights is one, too. Versions of layers may differ."""
    return (one.given, one.plans, one.layers.keys()) == (other.given, other.plans, other.layers.keys())


def _empty(played: ReplayPlan, to_us: int) -> bytes:
    """Return the page if none of the queries can be played."""
    head = {"type": "replay.answers", "begins": True, "from_us": played.from_us, "until_us": to_us}
    rows = result_schema(EARTH).append(pa.field("at_us", pa.int64())).empty_table()
    return frame(head | {"queries": [], "refused": played.refused}, rows)


def _queries(user: Asker, text: str) -> list[Query]:
    numbers = text.split(",")
    if not all(number.isascii() and number.isdigit() for number in numbers):
        raise Refused(
            "fields",
            gettext("queries must be numbers of queries with commas between them; got %(text)s")
            % {"text": f"{text!r:.100}"},
        )
    if len(numbers) > settings.REPLAY_QUERIES:
        raise Refused(
            "fields",
            gettext("a replay must have at most %(replay_queries)s queries; got %(count)s")
            % {"replay_queries": settings.REPLAY_QUERIES, "count": len(numbers)},
        )
    return visible_among(user, [int(number) for number in numbers])


def _played(user: Asker, queries: list[Query], from_us: int, end_us: int) -> ReplayPlan:
    """Return what a session plays: of the queries, those that can be played, and may be for the user."""
    streams = {stream.name for stream in replayed_streams()}
    refused: dict[str, str] = {}
    plays: dict[int, Query] = {}
    spaces = {query.space_id: query.space for query in queries}
    space = next(iter(spaces.values())).parsed if spaces else None
    for query in queries:
        try:
            plays |= _playable(user, query, space, streams)
        except (LookoutError, Refused) as error:
            refused[str(query.pk)] = getattr(error, "message", str(error))
    return ReplayPlan(
        queries=tuple(query.pk for query in queries if str(query.pk) not in refused),
        given={str(query.pk): query.plan for query in queries},
        plans={str(number): one.plan for number, one in plays.items()},
        refused=refused,
        from_us=from_us,
        end_us=end_us,
        ttl_s=dict(Stream.objects.values_list("name", "ttl_s")),
        layers=versions_of(plays.values()),
        space=space_document(space) if space else {},
        history=str(settings.HISTORY_DIR),
        layers_folder=str(settings.LAYERS_DIR),
    )


def _playable(user: Asker, query: Query, space: Space | None, streams: Collection[str]) -> dict[int, Query]:
    """Return a query and those that it names, by number; raise Refused if they cannot be played in the space."""
    named = _with_named(query)
    check_readable(list(named.values()), rights_of(user))
    for one in named.values():
        _check(one.plan, query.space.parsed, streams)
    if query.space.parsed != space:
        raise Refused(
            "query",
            gettext("the queries of a replay must lie in one space; got %(space_id)s") % {"space_id": query.space_id},
        )
    return named


def _with_named(query: Query) -> dict[int, Query]:
    """Return a query and those that it names, by number."""
    named, found = {query.pk: query}, [query]
    while found:
        one = found.pop()
        plan = parse_plan(one.plan, one.space.parsed)
        more = Query.objects.alive().filter(pk__in=[n for n in kind_of(plan).queries(plan) if n not in named])
        named |= {other.pk: other for other in more}
        found.extend(more)
    return named


def _check(document: Any, space: Space, streams: Collection[str]) -> None:
    """Raise Refused if a plan cannot be played on what is stored."""
    plan = parse_plan(document, space)
    kind = kind_of(plan)
    if kind.evaluation(plan) is Evaluation.SKETCH:
        raise Refused("query", _("a question to a sketch is not about stored elements"))
    sources = kind.sources(plan)
    if any(source.type == "stored" for source in sources):
        raise Refused(
            "query", _("partners of former times are not known, so a join with stored elements is not played")
        )
    for name in [plan.stream, *(source.name for source in sources if source.type == "stream")]:
        if name and name not in streams:
            raise Refused("stream", gettext("the elements of %(name)s are not stored") % {"name": name})

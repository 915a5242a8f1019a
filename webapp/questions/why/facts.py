"""What is known when a query is explained: the engine tells the present, the database and the history the past."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast

import numpy as np
from channels.db import database_sync_to_async
from django.conf import settings
from django.utils.translation import gettext

from streaming.explaining import ExplanationFacts, Partner, Subject, Term, explain
from streaming.explaining.closest import MOST_LOOKED_AT
from streaming.history import InvalidQuestion, StoredTables, layer
from streaming.history.snapshots import snapshots
from streaming.kinds.base import Focus, Plan
from streaming.kinds.join.partners import STORED_PREFIX
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.plan import RulePlan
from streaming.layers.features import with_hashes
from streaming.operators.features import Features
from streaming.operators.layer import LayerVersion
from streaming.operators.metres import within_reach
from streaming.plans import parse_plan
from streaming.results.rule_clock import ALARM, RuleClock
from webapp.hub import Hub
from webapp.models import Event, Query, Stream
from webapp.queries.queries import visible_among
from webapp.queries.waiting import unread
from webapp.questions.why.asking import ANSWER_S, answer_of, answer_to
from webapp.questions.why.fixes import microseconds, stored_subject, subject_of_row
from webapp.rights.access import Asker, rights_of

# Features are read in a box about the element; if there are more, in a smaller one.
MOST_FEATURES = 20_000
REACHES_M = (100_000.0, 10_000.0, 1_000.0)
# The nearest objects of the other stream of a join: more may be nearer by their geometries than by their boxes.
PARTNERS = 8
# A little less than a quarter of a turn: an area about tracks is at most half a turn wide.
QUARTER_DEG = 89.9


@dataclass(frozen=True)
class ExplainedQuery:
    """Which query is explained, and for whom.

    Parameters
    ----------
    user : User
    query : Query
    plan : Plan
    readable : bool
        Whether the query may read its layer now, for this user.
    """

    user: Asker
    query: Query
    plan: Plan
    readable: bool

    @classmethod
    def of(cls, user: Asker, query: Query) -> "ExplainedQuery":
        """Return what is asked about a saved query."""
        readable = not unread([query], rights_of(user))
        return cls(user, query, parse_plan(query.plan, query.space.parsed), readable)


async def known_now(asked: ExplainedQuery, hub: Hub, subject: Subject) -> ExplanationFacts:
    """Return what is known now, asking the engine for what it alone knows."""
    known = ExplanationFacts(layer=layers_about(asked, subject))
    focus = kind_of(asked.plan).focus(asked.plan)
    if focus is not None and focus.key:
        known = replace(known, **await _focus(hub, focus))
    for name in kind_of(asked.plan).facts(asked.plan):
        if name in _OF_ANSWERS and asked.query.should_run:
            known = await _OF_ANSWERS[name](asked, hub, subject, known)
        elif name == "partners":
            known = replace(known, partners=await _partners(asked, hub, subject))
    return known


async def element_of(hub: Hub, stream: str, key: str) -> Subject | None:
    """Return an object as the engine knows it; None if it does not."""
    everywhere = {"lo": [None], "hi": [None]}
    plan = {"stream": stream, "kind": "range", "compare": everywhere, "filters": [{"key": key}]}
    rows = await answer_to(hub, plan)
    return subject_of_row(stream, rows[0], hub.space) if rows else None


async def _focus(hub: Hub, focus: Focus) -> dict[str, Any]:
    found = await element_of(hub, focus.stream, focus.key)
    return {"focus": found, "lost": found is None}


async def _partners(asked: ExplainedQuery, hub: Hub, subject: Subject) -> list[Subject] | None:
    """Return the elements of the other stream of a join that are nearest to an element."""
    join = asked.query.plan["join"]
    at = list(subject.place)[: min(2, subject.space.n)]
    k = MOST_LOOKED_AT if kind_of(asked.plan).prediction(asked.plan) else PARTNERS
    plan = {"stream": join["stream"], "kind": "knn", "k": k, "around": {"at": at}}
    plan |= {name: join[name] for name in ("where", "filters") if join.get(name)}
    rows = await answer_to(hub, plan)
    if rows is None:
        return None
    return [subject_of_row(join["stream"], row, hub.space) for row in rows if row["sign"] != "@"]


async def _neighbours(asked: ExplainedQuery, hub: Hub, _: Subject, known: ExplanationFacts) -> ExplanationFacts:
    rows = await answer_of(hub, asked.query.pk)
    if rows is None:
        return known
    members = [Partner(row["key"], row["rank"], row["distance"]) for row in rows if row["sign"] != "@"]
    return replace(known, neighbours=sorted(members, key=lambda one: one.rank))


async def _groups(asked: ExplainedQuery, hub: Hub, _: Subject, known: ExplanationFacts) -> ExplanationFacts:
    """Add the values of an aggregate by group; the only group of an aggregate without groups is empty."""
    rows = await answer_of(hub, asked.query.pk)
    if rows is None:
        return known
    values = (
        (row["key"], row["properties"].get("value")) for row in rows if row["sign"] != "@" and "partner" not in row
    )
    return replace(known, groups={group: value for group, value in values if value is not None})


async def _fix(asked: ExplainedQuery, hub: Hub, subject: Subject, known: ExplanationFacts) -> ExplanationFacts:
    """Add the last believed report of an object, as another query with its speed tells it."""
    lon, _ = subject.place
    half = {"lo": [lon - QUARTER_DEG, -90], "hi": [lon + QUARTER_DEG, 90]}
    if half["lo"][0] < -180:
        half = {side: [bound[0] + 360, bound[1]] for side, bound in half.items()}
    plan = {"stream": asked.plan.stream, "kind": "track", "area": half, "filters": [{"key": subject.key}]}
    rows = await answer_to(hub, plan | {"fastest_m_s": asked.query.plan.get("fastest_m_s")})
    return replace(known, fix=subject_of_row(asked.plan.stream, rows[0], hub.space) if rows else None)


async def _member(asked: ExplainedQuery, hub: Hub, subject: Subject, known: ExplanationFacts) -> ExplanationFacts:
    answer = await answer_of(hub, asked.query.pk)
    return replace(known, member=None if answer is None else any(row["key"] == subject.key for row in answer))


async def _clock(asked: ExplainedQuery, hub: Hub, subject: Subject, known: ExplanationFacts) -> ExplanationFacts:
    clock = await hub.clocks.ask(asked.query.pk, subject.key, ANSWER_S)
    named = await database_sync_to_async(_named)(asked.user, asked.plan)
    answers = {}
    for one in () if cast("RulePlan", asked.plan).whole else named:
        answers[one.query.pk] = explain(one.plan, subject, await known_now(one, hub, subject))
    return replace(known, clock=clock, answers=answers, names={one.query.pk: one.query.name for one in named})


# What the engine tells of a query that runs, by the field that it adds.
_OF_ANSWERS: Mapping[str, Callable[..., Awaitable[ExplanationFacts]]] = {
    "neighbours": _neighbours,
    "groups": _groups,
    "fix": _fix,
    "member": _member,
    "clock": _clock,
}


def _named(user: Asker, plan: Plan) -> list[ExplainedQuery]:
    """Return what is asked about the queries that a rule names, those that the user may see."""
    return [ExplainedQuery.of(user, query) for query in visible_among(user, list(kind_of(plan).queries(plan)))]


def known_then(asked: ExplainedQuery, event: Event, subject: Subject | None) -> ExplanationFacts:
    """Return what is known about the time of an event: from stored reports and events, and layers as they are now."""
    known = ExplanationFacts(layer=layers_about(asked, subject), now_us=microseconds(event.time))
    focus = kind_of(asked.plan).focus(asked.plan)
    if focus is not None and focus.key:
        known = replace(known, focus=_stored(focus.stream, focus.key, event))
    useful = kind_of(asked.plan).facts(asked.plan)
    if "partners" in useful and event.partner:
        partner = _stored(asked.query.plan["join"]["stream"], event.partner, event)
        return replace(known, partners=None if partner is None else [partner])
    if "fix" in useful:
        return replace(known, fix=subject, member=event.sign == "+")
    return _rule_then(asked, event, known) if "clock" in useful else known


def _stored(stream: str, key: str, event: Event) -> Subject | None:
    row = Stream.objects.select_related("space").filter(name=stream).first()
    return stored_subject(row, key, microseconds(event.time)) if row else None


def _rule_then(asked: ExplainedQuery, event: Event, known: ExplanationFacts) -> ExplanationFacts:
    """Add what the stored events of the queries that a rule names tell about the time of an event of the rule."""
    plan, named = cast("RulePlan", asked.plan), [one.query for one in _named(asked.user, asked.plan)]
    if plan.whole:
        clock = _clock_then(plan, asked.query.pk, event, [])
        if clock is not None:  # the alarm has the numbers with which it began
            told = tuple(event.properties.get(name) for name in plan.figures.values())
            clock = replace(clock, numbers=told if any(number is not None for number in told) else ())
        return replace(known, names={query.pk: query.name for query in named}, clock=clock)
    # The time of an alarm is a whole second; what began it may have happened within that second.
    before = Event.objects.filter(key=event.key, time__lt=event.time + timedelta(seconds=1)).order_by("time", "pk")
    answers, members = {}, []
    for query in named:
        last = before.filter(query=query).last()
        holds = None if last is None else last.sign == "+"
        what = gettext("no event of it is stored")
        if last is not None:
            text = gettext("entered at %(time)s UTC") if holds else gettext("left at %(time)s UTC")
            what = text % {"time": f"{last.time:%Y-%m-%d %H:%M:%S}"}
        answers[query.pk] = Term(
            gettext("in %(name)s") % {"name": query.name},
            holds,
            "",
            "told",
            (Term(gettext("its last event before"), holds, what),),
        )
        members += [query.pk] if holds else []
    known = replace(known, answers=answers, names={query.pk: query.name for query in named})
    return replace(known, clock=_clock_then(plan, asked.query.pk, event, members))


def _clock_then(plan: RulePlan, rule: int, event: Event, members: list[int]) -> RuleClock | None:
    """Return the clock at the beginning of an alarm without a rate: the condition held for as long as the rule asks."""
    if event.sign != "+" or plan.rate:
        return None
    now_us = microseconds(event.time)
    if plan.silent:
        last = event.properties.get("last_report")
        heard_us = microseconds(datetime.fromisoformat(last)) if last else 0
        return RuleClock(rule, event.key, now_us, ALARM, True, plan.queries, heard_us=heard_us)
    return RuleClock(rule, event.key, now_us, ALARM, True, tuple(members), now_us - round(plan.for_s * 1e6))


def layers_about(asked: ExplainedQuery, subject: Subject | None) -> Callable[[str], LayerVersion | None]:
    """Return what gives the layer of a name: its features about an element, as far as the plan may need them.

    It gives None for a layer that the query may not read.
    """
    plan = asked.plan

    def features(name: str) -> LayerVersion | None:
        assert subject is not None  # what is about no object asks for no layer
        if not asked.readable and not name.startswith(STORED_PREFIX):
            return None
        everything = getattr(getattr(plan, "partners", None), "predicate", "") == "disjoint"
        reach = kind_of(plan).layer_reach(plan)[1]
        for near in (None,) if everything else REACHES_M:
            found = _features(name, subject, None if near is None else max(near, reach))
            # A smaller box that is empty says nothing about how far the nearest feature is.
            if found is not None and (len(found) or near in (None, REACHES_M[0])):
                return LayerVersion.of(found)
        return None

    return features


def _features(name: str, subject: Subject, reach: float | None) -> Features | None:
    """Return the features of a layer within reach of an element, None for all; None if they are too many."""
    space, root, key = subject.space, settings.LAYERS_DIR, name
    if name.startswith(STORED_PREFIX):
        root, key = snapshots(settings.HISTORY_DIR, space).root, name.removeprefix(STORED_PREFIX)
    box = None
    if reach is not None:
        bounds = subject.bounds if np.isfinite(reach) else np.array([space.whole()])
        box = within_reach(bounds, reach if np.isfinite(reach) else 0.0, space)[0]
    try:
        found = StoredTables(root, settings.HISTORY_DIR, space).query_by_box(layer(key), box, limit=MOST_FEATURES)
    except InvalidQuestion:
        return None
    if found.truncated:
        return None
    return Features(with_hashes(key, found.rows.drop_columns(["time_us"]), space), space)

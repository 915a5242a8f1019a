"""Rules over the answers of saved queries: what they may watch, and what they are told when that ends."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext, gettext_noop

from streaming.errors import InvalidPlan
from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.conditions import RuleCondition
from streaming.plans import parse_plan
from webapp.models import Query
from webapp.rights.access import Asker, rights_of
from webapp.words.refusals import Refused


def check_watched(user: Asker, document: dict[str, Any]) -> None:
    """Check the queries that a plan watches, given the plan in its full form.

    Raises
    ------
    Refused
        Where the user may not see one of them, it is of another stream, its answer has no objects that enter and leave,
        or a value is asked of it that it does not have.
    """
    terms = _terms(document)
    numbers = list(dict.fromkeys(term.query for term in terms))
    known = {query.pk: query for query in rights_of(user).queries().filter(pk__in=numbers)} if numbers else {}
    for number in numbers:
        query = known.get(number)
        if query is None:
            raise Refused(
                "plan", gettext("a rule must name queries that you may see; got %(number)s") % {"number": number}
            )
        if query.stream != document["stream"]:
            rule = gettext("a rule must name queries of its stream, %(stream)s") % {"stream": document["stream"]}
            raise Refused(
                "plan",
                gettext("%(rule)s; got %(number)s of %(stream)s")
                % {"rule": rule, "number": number, "stream": query.stream},
            )
        watched = parse_plan(query.plan, query.space.parsed)
        for term in terms:
            if term.query == number:
                _check_term(term, query, watched)


def _check_term(term: RuleCondition, query: Query, watched: Plan) -> None:
    """Check that a term of a rule and the plan of the query that it names fit each other."""
    number, aggregate = query.pk, getattr(watched, "aggregate", None)
    if term.operator != "value":
        if not kind_of(watched).evaluation(watched).watched or watched.emit == "all":
            of_kind = gettext("a %(kind)s query") % {"kind": query.plan["kind"]}
            what = of_kind if watched.emit != "all" else gettext("one that emits all")
            raise Refused(
                "plan",
                gettext("a rule must name queries whose answers objects enter and leave; got %(number)s, %(what)s")
                % {"number": number, "what": what},
            )
    elif aggregate is None:
        raise Refused(
            "plan", gettext("value must name a query with aggregate; got %(number)s, without one") % {"number": number}
        )
    elif bool(aggregate.group_by) != (term.group is not None):
        wrong = gettext("value must have a group for a query with group_by; got none for %(number)s")
        if term.group is not None:
            wrong = gettext("value must have no group for a query without group_by; got %(group)s for %(number)s")
        raise Refused("plan", wrong % {"number": number, "group": term.group})


def rules_about(query: Query) -> list[Query]:
    """Return the rules that watch a query, with their owners."""
    return list(rules_watching([query]))


def rules_watching(queries: Iterable[Query]) -> dict[Query, set[int]]:
    """Return the rules that watch any of some queries, with their owners, and which queries each of them watches."""
    of = {query.pk: query.stream for query in queries}
    rules = Query.objects.alive().filter(stream__in=set(of.values()), plan__kind="rule").select_related("owner")
    watching = {rule: watched_by(rule.plan) for rule in (rules if of else ())}
    return {rule: watched for rule, watched in watching.items() if not of.keys().isdisjoint(watched)}


def warn_rules(ended: Query) -> list[Query]:
    """Warn the rules that watch a query which has ended; return them. They stay, but no object enters by it."""
    watching = rules_about(ended)
    for rule in watching:
        text = gettext_noop("watches query %(number)s, %(name)s, which has ended")
        rule.warning = text % {"number": ended.pk, "name": ended.name}
        rule.save(update_fields=["warning", "updated"])
    return watching


def watched_by(document: dict[str, Any]) -> set[int]:
    """Return the numbers of the queries that a plan watches; none if this release refuses a plan that is stored."""
    try:
        return {term.query for term in _terms(document)}
    except InvalidPlan:
        return set()


def _terms(document: dict[str, Any]) -> tuple[RuleCondition, ...]:
    """Return the terms of the conditions of a plan, each about one query. No other kind than a rule has any."""
    return parse_plan(document).terms if document.get("kind") == "rule" else ()

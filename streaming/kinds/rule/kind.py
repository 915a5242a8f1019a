"""Rules: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.encounter.kind import duration
from streaming.kinds.fields import opening, parse_stream, whole
from streaming.kinds.join import times
from streaming.kinds.parts import check_keys, parse_number
from streaming.kinds.rule import conditions, schedule
from streaming.kinds.rule.conditions import MOST_QUERIES, condition_document, parse_condition
from streaming.kinds.rule.plan import KEYS, Rate, RulePlan
from streaming.kinds.rule.schedule import parse_schedule, schedule_document
from streaming.kinds.rule.schema import definition, definitions
from streaming.kinds.schema import of_kind
from streaming.language import gettext
from streaming.spaces import Space

MOST_OFTEN = 1_000


class RuleKind(Kind[RulePlan]):
    """Objects, or whole answers, for which a condition over the answers of other queries holds, in time."""

    name, written, plan_class = "rule", "rule", RulePlan
    once = True

    def parse(self, document: dict[str, Any], space: Space) -> RulePlan:
        check_keys(document, KEYS, gettext("a rule"))
        until = document.get("until")
        plan = RulePlan(
            stream=parse_stream(document),
            when=parse_condition(document.get("when"), "when"),
            until=None if until is None else parse_condition(until, "until"),
            for_s=times.seconds(document, "for_s", 0.0, lo=0.0),
            rearm_s=times.seconds(document, "rearm_s", 0.0, lo=0.0),
            rate=_rate(document.get("rate")),
            schedule=parse_schedule(document.get("schedule")),
            area=whole(space),
        )
        if len(plan.terms) > MOST_QUERIES:
            raise InvalidPlan(
                "a rule must name at most %(most_queries)s queries, counts or values; got %(count)s",
                most_queries=MOST_QUERIES,
                count=len(plan.terms),
            )
        if plan.whole and any(term.operator == "query" for term in plan.terms):
            raise InvalidPlan("a rule must be about objects (query) or about whole answers (count, value); got both")
        for name, holds in zip(("when", "until"), plan.holds_of_none, strict=True):
            if holds and not plan.whole:
                raise InvalidPlan(
                    "%(name)s must not hold for objects that are in none of the answers; combine not with "
                    "a query that they are in; got %(until)s",
                    name=name,
                    until=f"{condition_document(plan.until or plan.when)!r:.200}",
                )
        _check_times(plan)
        return plan

    def document(self, plan: RulePlan, space: Space) -> dict[str, Any]:
        document = opening(plan) | {"when": condition_document(plan.when)}
        if plan.until:
            document["until"] = condition_document(plan.until)
        document |= {"for_s": plan.for_s, "rearm_s": plan.rearm_s}
        if plan.rate:
            document["rate"] = {"more_than": plan.rate.more_than, "within_s": plan.rate.within_s}
        if plan.schedule:
            document["schedule"] = schedule_document(plan.schedule)
        return document

    def words(self, document: dict[str, Any], unit: str) -> str:
        told = gettext("alarm when %(conditions)s") % {"conditions": conditions.in_words(document["when"])}
        if rate := document.get("rate"):
            told += gettext(" more than %(more_than)s times in %(within_s)s") % {
                "more_than": rate["more_than"],
                "within_s": duration(rate["within_s"]),
            }
        elif document["for_s"]:
            told += gettext(" for %(for_s)s") % {"for_s": duration(document["for_s"])}
        if until := document.get("until"):
            told += gettext(", while %(conditions)s") % {"conditions": conditions.in_words(until)}
        if document["rearm_s"]:
            told += gettext(", not again for %(rearm_s)s") % {"rearm_s": duration(document["rearm_s"])}
        if document.get("schedule"):
            told += f", {schedule.in_words(document['schedule'])}"
        return told

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def condition(self) -> dict[str, Any]:
        return of_kind("rule")

    def evaluation(self, plan: RulePlan) -> Evaluation:
        return Evaluation.RULE

    def queries(self, plan: RulePlan) -> tuple[int, ...]:
        return plan.queries


def _check_times(plan: RulePlan) -> None:
    """Check that what a rule says about time goes together."""
    if plan.silent and (plan.rate or plan.until or not plan.for_s):
        raise InvalidPlan("a rule with silent must have a for_s above 0, and no rate and no until")
    if plan.rate and (plan.for_s or plan.until):
        raise InvalidPlan("rate must be without for_s and until; got both")


def _rate(document: Any) -> Rate | None:
    if document is None:
        return None
    if not isinstance(document, dict):
        raise InvalidPlan(
            "rate must be an object with more_than and within_s; got %(document)s", document=f"{document!r:.200}"
        )
    check_keys(document, ("more_than", "within_s"), "rate")
    more_than = parse_number(document.get("more_than"), "rate: more_than", lo=1, hi=MOST_OFTEN)
    if more_than != int(more_than):
        raise InvalidPlan("rate: more_than must be a whole number; got %(more_than)s", more_than=repr(more_than))
    return Rate(int(more_than), times.seconds(document, "within_s", above=0.0))

"""Rules: its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Fact, Kind
from streaming.kinds.details import SINCE
from streaming.kinds.encounter.kind import duration
from streaming.kinds.fields import whole
from streaming.kinds.rule import conditions, schedule
from streaming.kinds.rule.conditions import MOST_QUERIES, condition_document
from streaming.kinds.rule.plan import RulePlan
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class RuleKind(Kind[RulePlan]):
    """Objects, or whole answers, for which a condition over the answers of other queries holds, in time."""

    name, written, plan_class = "rule", "rule", RulePlan
    called = gettext_noop("a rule")
    explained = "streaming.explaining.rules:rule_term"
    details = (SINCE,)
    once = True

    def parse(self, document: dict[str, Any], space: Space) -> RulePlan:
        plan = super().parse(document, space)
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

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        return fields | {"area": whole(space)}

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

    def evaluation(self, plan: RulePlan) -> Evaluation:
        return Evaluation.RULE

    def facts(self, plan: RulePlan) -> tuple[Fact, ...]:
        return ("clock",)

    def queries(self, plan: RulePlan) -> tuple[int, ...]:
        return plan.queries


def _check_times(plan: RulePlan) -> None:
    """Check that what a rule says about time goes together."""
    if plan.silent and (plan.rate or plan.until or not plan.for_s):
        raise InvalidPlan("a rule with silent must have a for_s above 0, and no rate and no until")
    if plan.rate and (plan.for_s or plan.until):
        raise InvalidPlan("rate must be without for_s and until; got both")

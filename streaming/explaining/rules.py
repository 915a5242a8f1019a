"""Rules explained: the condition over answers, and the clocks of the rule and the object."""

from collections.abc import Mapping

from streaming.explaining.known import ExplanationFacts
from streaming.explaining.subject import Subject
from streaming.explaining.terms import Term, every, negated, some, with_details
from streaming.explaining.words import MICROSECONDS, clock, span
from streaming.kinds.rule.conditions import NUMBERS, RuleCondition, limit_in_words
from streaming.kinds.rule.plan import Rate, RulePlan
from streaming.language import gettext, ngettext
from streaming.results.rule_clock import ALARM, HOLDING, RuleClock

MOST_TIMES_SHOWN = 4
_LASTS = {"all": every, "any": some}


def rule_term(plan: RulePlan, subject: Subject | None, known: ExplanationFacts) -> Term:
    """Explain a rule: whether the object has an alarm, and what it lacks.

    With the clock of the rule and the object, the terms are as the engine knows them, at the time of that clock.
    Without it, the terms about time are not known. A rule about whole answers has no subject.
    """
    told = known.clock
    now_us = told.now_us if told else known.now_us
    if not now_us and subject is not None:
        now_us = subject.table["time_us"][0].as_py()
    terms = []
    if plan.schedule and now_us is not None:
        # The engine has decided what was before its clock: a schedule that begins just then has not begun there.
        on, until_us = plan.schedule.at(now_us - 1 if told else now_us)
        found = gettext("it counts until %(time)s") if on else gettext("it does not count until %(time)s")
        found %= {"time": clock(until_us, now_us)}
        terms.append(Term(gettext("the rule counts now"), on, found))
    if plan.silent:
        terms.append(_silent_term(plan, subject, known))
        terms += [_rearm_term(plan.rearm_s, told)] if plan.rearm_s and not (told and told.phase == ALARM) else []
        return every(gettext("has an alarm"), terms)
    numbers = dict(zip(plan.terms, told.numbers, strict=True)) if told and told.numbers else {}
    when = _condition(plan.when, known, numbers)
    if plan.until and (told is None or told.phase == ALARM):
        when = some(gettext("the alarm begins or lasts"), [when, _condition(plan.until, known, numbers)])
    if plan.rate:
        # Such an alarm lasts also while the condition does not hold.
        terms.append(with_details(_rate_term(plan.rate, told), [when]))
    else:
        terms.append(when)
    if plan.for_s:
        terms.append(_duration_term(plan.for_s, told))
    if plan.rearm_s and not (told and told.phase == ALARM):
        terms.append(_rearm_term(plan.rearm_s, told))
    return every(gettext("has an alarm"), terms, _since(plan, told))


def _silent_term(plan: RulePlan, subject: Subject | None, known: ExplanationFacts) -> Term:
    """Return the term that the object, or without a subject the whole stream, is silent."""
    told = known.clock
    asks = gettext("silent for %(for_s)s") % {"for_s": span(plan.for_s)}
    if told is None:
        return Term(asks, None, gettext("when it was heard last is not known"))
    name = known.names.get(plan.when.query, gettext("query %(query)s") % {"query": plan.when.query})
    found = gettext("it was never heard since the rule began")
    if told.heard_us:
        silent_s = max(0.0, (told.now_us - told.heard_us) / MICROSECONDS)
        found = gettext("its last report was at %(time)s, %(silent_s)s before") % {
            "time": clock(told.heard_us, told.now_us),
            "silent_s": span(silent_s),
        }
    silent = Term(asks, told.phase == ALARM, found)
    if subject is None and not told.key:
        return silent
    asks = gettext("its last report was in “%(name)s”") % {"name": name}
    if plan.when.query in told.unknown:
        member = Term(asks, None, gettext("the query does not run"))
    elif told.key in plan.when.expected and plan.when.query in told.members:
        member = Term(gettext("%(asks)s, or it is expected") % {"asks": asks}, True, "")
    else:
        member = Term(asks, plan.when.query in told.members, "")
    return every(gettext("it is missed"), [member, silent])


def _since(plan: RulePlan, told: RuleClock | None) -> str:
    if told is None or told.phase != ALARM:
        return ""
    # An alarm begins when its condition has held for long enough, but not before the rule is armed again.
    began_us = told.since_us if plan.rate else max(told.since_us + round(plan.for_s * MICROSECONDS), told.rearmed_us)
    return gettext("since %(time)s") % {"time": clock(began_us, told.now_us)}


def _condition(
    condition: RuleCondition, known: ExplanationFacts, numbers: Mapping[RuleCondition, float | None]
) -> Term:
    if condition.operator in NUMBERS:
        return _number_term(condition, known, numbers)
    if condition.operator == "query":
        return _answer_term(condition.query, known)
    parts = [_condition(part, known, numbers) for part in condition.parts]
    if condition.operator == "not":
        return negated(gettext("not: %(condition)s") % {"condition": parts[0].asks}, parts[0])
    joined = gettext(" and ") if condition.operator == "all" else gettext(" or ")
    return _LASTS[condition.operator](joined.join(part.asks for part in parts), parts)


def _number_term(
    condition: RuleCondition, known: ExplanationFacts, numbers: Mapping[RuleCondition, float | None]
) -> Term:
    """Return the term that a number of a whole answer is below, or above, a limit."""
    name = known.names.get(condition.query, gettext("query %(query)s") % {"query": condition.query})
    about = {"name": name, "group": condition.group, "limit": limit_in_words(condition.below, condition.above)}
    number = numbers.get(condition)
    if condition.operator == "count":
        asks = gettext("the count of “%(name)s” is %(limit)s") % about
        if condition not in numbers:
            return Term(asks, None, gettext("how many objects it had is not known"))
        if number is None:
            return Term(asks, None, gettext("the query does not run"))
        found = ngettext("%(count)s object", "%(count)s objects", int(number)) % {"count": int(number)}
        return Term(asks, condition.holds_of(number), found)
    asks = gettext("the value of “%(name)s” is %(limit)s") % about
    if condition.group:
        asks = gettext("the value of “%(name)s” for %(group)s is %(limit)s") % about
    if condition not in numbers:
        return Term(asks, None, gettext("the value that it had is not known"))
    if number is None:
        return Term(asks, None, gettext("the query does not run, or there is no value"))
    return Term(asks, condition.holds_of(number), f"{number:.6g}")


def _answer_term(query: int, known: ExplanationFacts) -> Term:
    """Return the term that the object is in the answer of a query: as the engine says, otherwise as it is explained."""
    name = known.names.get(query, gettext("query %(query)s") % {"query": query})
    why = known.answers.get(query)
    holds = why.holds if why else None
    found = ""
    if known.clock and query in known.clock.unknown:
        return Term(gettext("in “%(name)s”") % {"name": name}, None, gettext("the query does not run"))
    if known.clock:
        holds = query in known.clock.members
        found = (
            gettext("the engine has it in the answer")
            if holds
            else gettext("the engine does not have it in the answer")
        )
    term = Term(gettext("in “%(name)s”") % {"name": name}, holds, found)
    return with_details(term, why.parts) if why else term


def _duration_term(for_s: float, told: RuleClock | None) -> Term:
    asks = gettext("for %(for_s)s without a break") % {"for_s": span(for_s)}
    if told is None:
        return Term(asks, None, gettext("since when the condition held is not known"))
    if told.phase not in (HOLDING, ALARM):
        return Term(asks, False, gettext("the condition does not hold"))
    lasted_s = max(0.0, (told.now_us - told.since_us) / MICROSECONDS)
    found = gettext("holds for %(lasted_s)s, since %(time)s") % {
        "lasted_s": span(lasted_s),
        "time": clock(told.since_us, told.now_us),
    }
    if told.phase == ALARM:
        return Term(asks, True, gettext("held since %(time)s") % {"time": clock(told.since_us, told.now_us)})
    return Term(
        asks,
        lasted_s > for_s,
        gettext("%(found)s; %(for_s)s to go") % {"found": found, "for_s": span(max(0.0, for_s - lasted_s))},
    )


def _rate_term(rate: Rate, told: RuleClock | None) -> Term:
    asks = gettext("more than %(more_than)s times in %(within_s)s") % {
        "more_than": rate.more_than,
        "within_s": span(rate.within_s),
    }
    if told is None:
        return Term(asks, None, gettext("how often it began to hold is not known"))
    count = len(told.began_us)
    times = [clock(at_us, told.now_us) for at_us in told.began_us[-MOST_TIMES_SHOWN:]]
    earlier = "earlier, " if count > MOST_TIMES_SHOWN else ""
    shown = f": {earlier}{', '.join(times)}" if times else ""
    return Term(asks, count > rate.more_than, f"{count} {'time' if count == 1 else 'times'}{shown}")


def _rearm_term(rearm_s: float, told: RuleClock | None) -> Term:
    asks = gettext("not again for %(rearm_s)s after an alarm") % {"rearm_s": span(rearm_s)}
    if told is None:
        return Term(asks, None, gettext("when the last alarm ended is not known"))
    if told.rearmed_us >= told.now_us:
        left = span((told.rearmed_us - told.now_us) / MICROSECONDS)
        return Term(
            asks,
            False,
            gettext("not again before %(time)s, in %(left)s")
            % {"time": clock(told.rearmed_us, told.now_us), "left": left},
        )
    return Term(asks, True, gettext("no alarm ended lately"))

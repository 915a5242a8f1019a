"""The clocks of rules and objects, which somebody asked for: where an entry of the assembler of rules is in time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from streaming.elements import key_hashes
from streaming.kinds.rule.plan import RulePlan
from streaming.operators.rules import LOST, MEMBER, MICROSECONDS, number_of
from streaming.results import rule_clock
from streaming.results.rule_clock import RuleClock
from streaming.servers.answers.names import names_of
from streaming.servers.control.step import ControlStep
from streaming.servers.sorted_runs import SortedRuns
from streaming.servers.ways.rules.entries import IDLE, WHOLE
from streaming.servers.ways.rules.numbers import Numbers

PHASES = (rule_clock.IDLE, rule_clock.HOLDING, rule_clock.ALARM)


def told_clocks(
    control: ControlStep,
    tables: tuple[SortedRuns, SortedRuns],
    numbers: Numbers,
    now_us: int,
    heard_us: Callable[[np.ndarray], np.ndarray],
) -> tuple[dict[str, Any], ...]:
    """Return the clocks that the control entries of a batch asked for, of the rules that run.

    Parameters
    ----------
    control : ControlStep
    tables : tuple of SortedRuns
        The entries and the beginnings of `RuleState`, after the batch.
    numbers : Numbers
    now_us : int
    heard_us : callable
        Returns when objects were heard, given their hashes; 0 where that is not known.

    Returns
    -------
    tuple of dict
        As `RuleClock.document` returns them. An object without an entry is in none of the answers.
    """
    plans = control.after.rule_plans
    asked = [(plans[rule], rule, key) for rule, key in control.applied.clocks if rule in plans]
    clocks = []
    for plan, rule, key in asked:
        unknown = tuple(query for query in plan.queries if not control.after.runs(query))
        told = replace(_clock(plan, rule, key, tables, numbers, now_us), unknown=unknown)
        if plan.silent:
            newest_us = int(heard_us(key_hashes(plan.stream, [key]))[0])
            told = replace(told, heard_us=max(told.heard_us, newest_us))
        clocks.append(told.document())
    return tuple(clocks)


def _clock(
    plan: RulePlan, rule: int, key: str, tables: tuple[SortedRuns, SortedRuns], numbers: Numbers, now_us: int
) -> RuleClock:
    entries, beginnings = tables
    hashed = np.array([WHOLE]) if plan.whole or (plan.silent and not key) else key_hashes(plan.stream, [key])
    figures = tuple(_figures(plan, numbers)) if plan.whole else ()
    name = names_of(np.array([rule], dtype=np.int64), hashed)
    part, row = entries.find(name)
    if part[0] < 0:
        return RuleClock(rule, key, now_us, numbers=figures)
    entry = {column: int(values[0]) for column, values in entries.take(part, row).items()}
    members = tuple(term.query for bit, term in enumerate(plan.terms) if entry["bits"] >> bit & 1)
    if plan.silent and entry["bits"] & (MEMBER | LOST):
        members = plan.queries
    phase, rearmed_us = PHASES[entry["phase"]], entry["rearmed_us"]
    since_us = entry["since_us"] if entry["phase"] != IDLE else 0
    began_us: tuple[int, ...] = ()
    if plan.rate:
        times_us = np.sort(beginnings.take(*beginnings.rows(name))["time_us"])
        began_us = tuple(times_us[times_us + round(plan.rate.within_s * MICROSECONDS) > now_us].tolist())
    told = RuleClock(rule, key, now_us, phase, bool(entry["holds"]), members, since_us, rearmed_us, began_us)
    return replace(told, numbers=figures, heard_us=entry["heard_us"])


def _figures(plan: RulePlan, numbers: Numbers) -> Iterator[float | None]:
    """Yield the number that each term of a rule looks at, None for one that is not known."""
    known = dict(zip(map(tuple, numbers.keys.tolist()), numbers.known().tolist(), strict=True))
    for term in plan.terms:
        number = known.get((term.query, number_of(term)), np.nan)
        yield None if np.isnan(number) else number

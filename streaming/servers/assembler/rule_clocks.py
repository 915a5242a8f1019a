"""The clocks of rules and objects, which somebody asked for: where an entry of the assembler of rules is in time."""

from typing import Any

import numpy as np

from streaming.elements import key_hashes
from streaming.operators.rules import MICROSECONDS
from streaming.results import rule_clock
from streaming.results.rule_clock import RuleClock
from streaming.servers.answers.names import names_of
from streaming.servers.assembler.rule_counts import Counts
from streaming.servers.control.step import ControlStep
from streaming.servers.sorted_runs import SortedRuns

# Where an entry is: its condition does not hold; it holds, but not for long enough; its alarm lasts.
IDLE, HOLDING, ALARM = 0, 1, 2
# In place of the object of an entry, for rules about whole answers.
WHOLE = 0
PHASES = (rule_clock.IDLE, rule_clock.HOLDING, rule_clock.ALARM)


def told_clocks(
    control: ControlStep, tables: tuple[SortedRuns, SortedRuns], counts: Counts, now_us: int
) -> tuple[dict[str, Any], ...]:
    """Return the clocks that the control entries of a batch asked for, of the rules that run.

    Parameters
    ----------
    control : ControlStep
    tables : tuple of SortedRuns
        The entries and the beginnings of `RuleState`, after the batch.
    counts : Counts
    now_us : int

    Returns
    -------
    tuple of dict
        As `RuleClock.document` returns them. An object without an entry is in none of the answers.
    """
    rules = control.after.rules.ids.tolist() if control.applied.clocks else ()
    asked = [(control.after.plan(rule), rule, key) for rule, key in control.applied.clocks if rule in rules]
    return tuple(_clock(*one, tables, counts, now_us).document() for one in asked)


def _clock(plan, rule, key, tables, counts, now_us):
    entries, beginnings = tables
    hashed = np.array([WHOLE]) if plan.whole else key_hashes(plan.stream, [key])
    name = names_of(np.array([rule], dtype=np.int64), hashed)
    part, row = entries.find(name)
    if part[0] < 0:
        return RuleClock(rule, key, now_us)
    entry = {column: int(values[0]) for column, values in entries.take(part, row).items()}
    members = tuple(term.query for bit, term in enumerate(plan.terms) if entry["bits"] >> bit & 1)
    counted = tuple(counts.among(np.array(plan.queries, dtype=np.int64)).tolist()) if plan.whole else ()
    phase, rearmed_us = PHASES[entry["phase"]], entry["rearmed_us"]
    since_us = entry["since_us"] if entry["phase"] != IDLE else 0
    began_us: tuple[int, ...] = ()
    if plan.rate:
        times_us = np.sort(beginnings.take(*beginnings.rows(name))["time_us"])
        began_us = tuple(times_us[times_us + round(plan.rate.within_s * MICROSECONDS) > now_us].tolist())
    return RuleClock(rule, key, now_us, phase, bool(entry["holds"]), members, since_us, rearmed_us, began_us, counted)

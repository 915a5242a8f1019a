"""When rules are to be looked at next, although nothing is reported: for back-tests, which skip what tells nothing."""

from streaming.operators.rules import Rules
from streaming.operators.schedules import NEVER_US
from streaming.servers.ways.rules.assembler import DECIDED_AFTER_US, due_by
from streaming.servers.ways.rules.silences import due_us
from streaming.servers.ways.rules.state import RuleState


def next_us(state: RuleState, rules: Rules, now_us: int) -> int:
    """Return before which time a batch without elements tells nothing of rules, given the clock; `NEVER_US` if never.

    Rules have waited for long enough, and their schedules begin and end.
    """
    if state.over.num_rows:
        return now_us + 1
    due = state.entries.take(*state.entries.select(lambda run: run.columns["due_us"] < NEVER_US), ("due_us",))
    waits = [
        rules.schedules.until_us(due_by(now_us)),
        *state.numbers.waiting_us.tolist(),
        *due["due_us"].tolist(),
        *_silent_us(state, rules),
    ]
    return min(min(waits), NEVER_US - DECIDED_AFTER_US) + DECIDED_AFTER_US


def _silent_us(state: RuleState, rules: Rules) -> list[int]:
    """Return when objects, and streams, may be silent for as long as rules ask."""
    if not rules.silences:
        return []
    some = state.entries.select(lambda run: due_us(rules, state.feeds, run.columns) < NEVER_US)
    found = due_us(rules, state.feeds, state.entries.take(*some)).tolist()
    silent_us = dict(zip(rules.ids.tolist(), rules.silent_us.tolist(), strict=True))
    return found + [feed.newest_us + silent_us[rule] for rule, feed in state.feeds.items() if not feed.silent]

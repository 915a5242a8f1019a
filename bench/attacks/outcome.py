"""What an attack did to the other user, whether that is within the limits, and the table of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from bench.report import figure_text, table

# The promises: how old answers are, how much a process grows, and how soon all is as before.
LIMIT_MS, LIMIT_MIB, LIMIT_S = 1_000.0, 1_024.0, 10.0
# So many seconds in a row must be as before.
CALM = 5
# A second is as before if no age in it is above so many times the 99th percentile of before.
AS_BEFORE = 2.0

Second = Mapping[str, Any]


@dataclass(frozen=True)
class Ages:
    """Ages in milliseconds in a span of time: of rows when they came, and of answers at each instant (`watcher`)."""

    rows: int = 0
    p50_ms: float | None = None
    p99_ms: float | None = None
    longest_ms: float | None = None
    answer_p99_ms: float | None = None
    answer_longest_ms: float | None = None

    @property
    def kept(self) -> bool:
        """Whether answers came, and were new enough."""
        return None not in (self.p99_ms, self.answer_p99_ms) and max(self.p99_ms, self.answer_p99_ms) <= LIMIT_MS


def ages_of(seconds: Sequence[Second]) -> Ages:
    """Return the ages of what the watcher told in some seconds.

    Examples
    --------
    >>> ages_of([{"rows_ms": [40.0, 60.0], "answer_ms": [50.0]}, {"rows_ms": [50.0], "answer_ms": [90.0, 70.0]}])
    Ages(rows=3, p50_ms=50.0, p99_ms=59.8, longest_ms=60.0, answer_p99_ms=89.6, answer_longest_ms=90.0)
    """
    rows, answer = ([age for second in seconds for age in second[name]] for name in ("rows_ms", "answer_ms"))
    return Ages(len(rows), *_percentiles(rows, [50, 99, 100]), *_percentiles(answer, [99, 100]))


def _percentiles(ages, wanted):
    return [round(float(age), 1) for age in np.percentile(ages, wanted)] if ages else [None] * len(wanted)


def settled_s(after: Sequence[Second], ended_s: float, before: Ages) -> float | None:
    """Return how many seconds after the end of an attack all was as before; None if it never was.

    Examples
    --------
    >>> calm, late = {"rows_ms": [50.0], "answer_ms": [60.0]}, {"rows_ms": [], "answer_ms": [1060.0]}
    >>> seconds = [{"at_s": 101.0 + n, **(late if n < 2 else calm)} for n in range(7)]
    >>> settled_s(seconds, 100.0, ages_of([calm])), settled_s(seconds[:4], 100.0, ages_of([calm]))
    (2.0, None)
    """
    bounds = [(before.p99_ms, before.longest_ms), (before.answer_p99_ms, before.answer_longest_ms)]
    if any(None in pair for pair in bounds):
        return None
    rows_ms, answer_ms = (max(AS_BEFORE * p99, longest) for p99, longest in bounds)
    calm = 0
    for second in after:
        now = ages_of([second])
        as_before = now.rows and now.longest_ms <= rows_ms and now.answer_longest_ms <= answer_ms
        calm = calm + 1 if as_before else 0
        if calm == CALM:
            return round(max(0.0, second["at_s"] - CALM - ended_s), 1)
    return None


@dataclass(frozen=True)
class Outcome:
    """What was measured around one attack.

    Parameters
    ----------
    attack : str
    before, during, after : Ages
    settled_s : float or None
        See `settled_s`.
    grown : str
        The process that grew most.
    grown_mib : float
    tally : mapping of str to int
        What the attackers counted: what they sent, what was refused with which code, what was wrong.
    failed : str
        Why it could not be measured to the end; empty if it was.
    resyncs, connections : int
        Of the other user.
    """

    attack: str
    before: Ages = field(default_factory=Ages)
    during: Ages = field(default_factory=Ages)
    after: Ages = field(default_factory=Ages)
    settled_s: float | None = None
    grown: str = ""
    grown_mib: float = 0.0
    tally: Mapping[str, int] = field(default_factory=dict)
    failed: str = ""
    resyncs: int = 0
    connections: int = 0

    @property
    def broken(self) -> list[str]:
        """The promises that were not kept."""
        calm = self.settled_s is not None and self.settled_s <= LIMIT_S
        whole = not self.tally.get("not whole", 0)
        kept = {"ages": self.during.kept, "memory": self.grown_mib <= LIMIT_MIB, "calm after": calm, "whole": whole}
        return [self.failed] if self.failed else [name for name, well in kept.items() if not well]

    @property
    def document(self) -> dict[str, Any]:
        """Everything, to be written as JSON."""
        return asdict(self) | {"broken": self.broken}


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as a table, a line for each attack."""
    spans = ("before", "during", "after")
    heads = [f"{span}, p50 / p99 / longest ms" for span in spans]
    heads = ["attack", *heads, "answer p99 / longest ms", "as before after s", "grew most", "MiB", "counted", "verdict"]
    return table(heads, [_row(outcome) for outcome in outcomes])


def _row(told):
    spans = [_told(span.p50_ms, span.p99_ms, span.longest_ms) for span in (told.before, told.during, told.after)]
    answer = _told(told.during.answer_p99_ms, told.during.answer_longest_ms)
    counted = ", ".join(f"{name}: {count}" for name, count in sorted(told.tally.items()) if count)
    verdict = "kept" if not told.broken else f"not kept: {', '.join(told.broken)}"
    grown = [told.grown, f"{told.grown_mib:,.0f}"]
    return [told.attack, *spans, answer, figure_text(told.settled_s), *grown, counted or "-", _line(verdict)]


def _told(*ages_ms):
    return " / ".join("-" if age is None else f"{age:,.0f}" for age in ages_ms)


def _line(text):
    return " ".join(text.split()).replace("|", "/")[-300:]

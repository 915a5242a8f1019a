"""What a fragment says of queries: which failed, are left out or were refused, and which cost much."""

from collections.abc import Iterable, Mapping
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streaming.operators.asked import NOBODY
from streaming.operators.runs import find, first_of_runs
from streaming.results import FAILURE, ROOM
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep

# A fragment names the queries that took at least this much of the region's time in the batch.
COST_REPORTED_S = 0.05
# And the owners whose queries took this part of it together, since a task may carry out several regions.
OWNERS_PART = 0.4
# Of an owner, it names so many, the costliest ones.
COSTLIEST = 200
# The processor time of a step is shared by owners in proportion to what was measured, up to so many times that.
MOST_SHARED = 16.0


class Spent(NamedTuple):
    """What a step has taken, in seconds: by the clock, and of the processor, which may be busy with something else."""

    clock_s: float
    processor_s: float

    @classmethod
    def now(cls) -> "Spent":
        """Return the present times."""
        return cls(perf_counter(), process_time())

    def since(self, before_s: float = 0.0) -> "Spent":
        """Return what was taken since these times, and before."""
        now = self.now()
        return Spent(now.clock_s - self.clock_s + before_s, now.processor_s - self.processor_s + before_s)


def failures_of(results: Results, border: Border, registry: Registry) -> tuple[dict[str, Any], ...]:
    """Return the failures for a fragment: of parts of queries, of queries left out from now on, and in quarantine.

    Those of reports that were not used come last.

    Parameters
    ----------
    results : Results
        Tells by query what is wrong although it is evaluated.
    border : Border
        Knows the queries that were left out.
    registry : Registry
    """
    failed: dict[int, dict[str, Any]] = {query: {"error": error} for query, error in results.failures.items()}
    failed |= {query: _left_out(query, border) for query in border.errors}
    kept = {query: why for query, why in border.quarantined.items() if query in border.left_out}
    failed |= {query: {"error": kept[query], "refused": True} | _lost(query, border) for query in kept}
    unused = [
        (query, {"error": told.reason, "kind": kind, "reports": told.reports})
        for (query, kind), told in results.unused.items()
    ]
    return _alike([*failed.items(), *unused], registry)


def _left_out(query: int, border: Border) -> dict[str, Any]:
    """Return the failure of a query that a border leaves out."""
    known = border.left_out.get(query, border.elsewhere.get(query))  # a query that ended meanwhile is not left out
    told = {"error": border.errors[query], "left_out": ROOM if query in border.refused else FAILURE}
    return told | {"until_us": known.until_us if known else 0} | _lost(query, border)


def _lost(query: int, border: Border) -> dict[str, Any]:
    return {"lost": True} if query in border.lost else {}


def refusals_of(registry: Registry) -> tuple[dict[str, Any], ...]:
    """Return the failures for a fragment that tell of refused queries."""
    return _alike([(query, {"error": why, "refused": True}) for query, why in registry.refused.items()], registry)


def _alike(failures: Iterable[tuple[int, dict[str, Any]]], registry: Registry) -> tuple[dict[str, Any], ...]:
    """Group queries by their failure, so that it is written once, however many queries share it."""
    queries: dict[tuple[tuple[str, Any], ...], list[list[int]]] = {}
    for query, failure in failures:
        queries.setdefault(tuple(failure.items()), []).append([query, registry.registrations[query].revision])
    return tuple(dict(failure) | {"queries": alike} for failure, alike in queries.items())


def costs_of(seconds: Mapping[int, float], control: ControlStep, spent: Spent, snapshots: pa.Table) -> dict[str, Any]:
    """Return the costs for a fragment, in ms: of each costly query and owner, and of the whole step; empty without.

    Those of owners are shares of the processor time of the step, which includes what was measured for no query.

    Parameters
    ----------
    seconds : mapping of int to float
        What was measured for each query.
    control : ControlStep
    spent : Spent
        What the step took.
    snapshots : pyarrow.Table
        The rows of the snapshots that it made.
    """
    registry, applied = control.after, control.applied
    dear = {query: cost for query, cost in seconds.items() if cost >= COST_REPORTED_S}
    queries = [[query, registry.registrations[query].revision, _ms(cost)] for query, cost in dear.items()]
    owners = _costs_of_owners(seconds, registry, spent.processor_s)
    told = {"ms": _ms(spent.clock_s), "processor_ms": _ms(spent.processor_s), "queries": queries, "owners": owners}
    named = {one for _, _, costs in owners for one, *_ in costs}
    told["begun"] = sorted(named.intersection(ack["query"] for ack in applied.acks))
    told["rows"] = snapshots.num_rows
    return told if queries or owners else {}


def _costs_of_owners(seconds: Mapping[int, float], registry: Registry, processor_s: float) -> list[list[Any]]:
    """Return [owner, ms, [[query, revision, ms]]] of each owner whose queries cost much together: the costliest."""
    query, cost = np.array(list(seconds), dtype=np.int64), np.array(list(seconds.values()), dtype=np.float64)
    place, known = find(registry.columns.query, query)
    place, query, cost = place[known], query[known], cost[known]
    owner, answer = registry.columns.owner[place], registry.columns.answer[place]
    # An answer that several queries of an owner share is evaluated once.
    order = np.lexsort((query, answer, owner))
    order = order[first_of_runs(answer[order]) | first_of_runs(owner[order])]
    measured_s = cost[order[np.unique(answer[order], return_index=True)[1]]].sum()
    times = min(MOST_SHARED, processor_s / max(measured_s, 1e-9))
    order = order[owner[order] != NOBODY]
    order = order[np.lexsort((-cost[order], owner[order]))]
    first = np.flatnonzero(first_of_runs(owner[order]))
    told = []
    for rows in np.split(order, first[1:]) if len(first) else ():
        together, dear = cost[rows].sum(), rows[:COSTLIEST]
        if together >= OWNERS_PART * COST_REPORTED_S:
            costs = zip(query[dear].tolist(), times * cost[dear], strict=True)
            costly = [[one, registry.registrations[one].revision, _ms(cost_s)] for one, cost_s in costs]
            told.append([int(owner[rows[0]]), _ms(times * together), costly])
    return told


def _ms(seconds: float) -> int:
    return round(1000 * float(seconds))

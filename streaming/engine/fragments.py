"""What a fragment says of queries: which failed, which were refused, and which cost much."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from streaming.operators.asked import NOBODY
from streaming.operators.runs import find, first_of_runs
from streaming.servers.control.border import Border
from streaming.servers.control.registry import Registry

# A fragment names the queries that took at least this much of the region's time in the batch.
COST_REPORTED_S = 0.05


def failures_of(warnings: Mapping[int, str], border: Border, registry: Registry) -> tuple[dict[str, Any], ...]:
    """Return the failures for a fragment: all failed queries by error, then those that are lost.

    Parameters
    ----------
    warnings : mapping of int to str
        By query, what is wrong although it is evaluated.
    border : Border
        Knows the queries that were left out.
    registry : Registry
    """
    lost = {query: error for query, error in border.errors.items() if query in border.lost}
    return _by_error({**border.errors, **warnings}, registry) + _by_error(lost, registry, lost=True)


def refusals_of(registry: Registry) -> tuple[dict[str, Any], ...]:
    """Return the failures for a fragment that tell of refused queries."""
    return _by_error(registry.refused, registry, refused=True)


def _by_error(errors: Mapping[int, str], registry: Registry, **more: Any) -> tuple[dict[str, Any], ...]:
    """Group failed queries by error, so that an error is written once, however many queries share it."""
    queries: dict[str, list[list[int]]] = {}
    for query, error in errors.items():
        queries.setdefault(error, []).append([query, registry.registrations[query].revision])
    return tuple({"error": error, "queries": alike} | more for error, alike in queries.items())


def costs_of(seconds: Mapping[int, float], registry: Registry, whole_s: float) -> dict[str, Any]:
    """Return the costs for a fragment, in ms: of each costly query and owner, and of the whole step; empty without."""
    dear = {query: cost for query, cost in seconds.items() if cost >= COST_REPORTED_S}
    queries = [[query, registry.registrations[query].revision, _ms(cost)] for query, cost in dear.items()]
    owners = _costs_of_owners(seconds, registry)
    return {"ms": _ms(whole_s), "queries": queries, "owners": owners} if queries or owners else {}


def _costs_of_owners(seconds: Mapping[int, float], registry: Registry) -> list[list[int]]:
    """Return [owner, ms, query, revision, ms] of each owner whose queries cost much together: the costliest of them."""
    query, cost = np.array(list(seconds), dtype=np.int64), np.array(list(seconds.values()), dtype=np.float64)
    place, known = find(registry.columns.query, query)
    owned = known.copy()
    owned[known] = registry.columns.owner[place[known]] != NOBODY
    place, query, cost = place[owned], query[owned], cost[owned]
    owner, answer = registry.columns.owner[place], registry.columns.answer[place]
    # An answer that several queries of an owner share is evaluated once.
    order = np.lexsort((query, answer, owner))
    order = order[first_of_runs(answer[order]) | first_of_runs(owner[order])]
    order = order[np.lexsort((-cost[order], owner[order]))]
    first = np.flatnonzero(first_of_runs(owner[order]))
    together = np.add.reduceat(cost[order], first) if len(first) else cost[:0]
    told = [
        (float(all_s), int(row)) for all_s, row in zip(together, order[first], strict=True) if all_s >= COST_REPORTED_S
    ]
    revision = {row: registry.registrations[int(query[row])].revision for _, row in told}
    return [[int(owner[row]), _ms(all_s), int(query[row]), revision[row], _ms(cost[row])] for all_s, row in told]


def _ms(seconds: float) -> int:
    return round(1000 * float(seconds))

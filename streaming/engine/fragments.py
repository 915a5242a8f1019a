"""What a fragment says of queries: which failed, which were refused, and which cost much."""

from collections.abc import Mapping
from typing import Any

from streaming.servers.control.border import Border
from streaming.servers.control.registry import Registry

# A fragment names the queries that took at least this much of the region's time in the batch.
COST_REPORTED_S = 0.05


def failures_of(warnings: Mapping[int, str], border: Border, registry: Registry) -> tuple[dict[str, Any], ...]:
    """Return the failures for a fragment: failed queries by error, those in quarantine, then those that are lost.

    Parameters
    ----------
    warnings : mapping of int to str
        By query, what is wrong although it is evaluated.
    border : Border
        Knows the queries that were left out.
    registry : Registry
    """
    ended = {query: why for query, why in border.quarantined.items() if query in border.left_out}
    lost = {query: why for query, why in (border.quarantined | border.errors).items() if query in border.lost}
    return (
        _by_error({**border.errors, **warnings}, registry)
        + _by_error(ended, registry, refused=True)
        + _by_error(lost, registry, lost=True)
    )


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
    """Return the costs for a fragment, in ms: of each costly query and of the whole step; empty if none was costly."""
    dear = {query: cost for query, cost in seconds.items() if cost >= COST_REPORTED_S}
    costs = [[query, registry.registrations[query].revision, round(1000 * cost)] for query, cost in dear.items()]
    return {"ms": round(1000 * whole_s), "queries": costs} if costs else {}

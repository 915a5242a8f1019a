"""What queries ask of the elements that lie where they look: CQL2 text, and filters."""

from collections.abc import Sequence

import numpy as np

from streaming.filters import parse_filter, passes
from streaming.operators.boxes import intersects
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.plans import BoxFilter, KeyFilter, Plan
from streaming.spaces import Space
from streaming.udf import Judged, evaluate_element


class Conditions:
    """The conditions of queries; those with equal ones share them.

    Parameters
    ----------
    plans : sequence of Plan, length Q
    space : Space
    """

    def __init__(self, plans: Sequence[Plan], space: Space) -> None:
        self.space = space
        conditions, self._condition = numbered([(plan.where, plan.filters) for plan in plans])
        self._conditions = [(parse_filter(where) if where else None, filters) for where, filters in conditions]

    def passing(self, row: np.ndarray, query: np.ndarray, elements: Elements, failures: Failures) -> np.ndarray:
        """Tell which pairs (P,) have an element that passes the query's filters; each distinct one sees it once.

        `failures` is told of user-defined filters that fail, by the positions of their queries.
        """
        keep = np.ones(len(row), dtype=bool)
        for number, (where, filters) in enumerate(self._conditions):
            if where is None and not filters:
                continue
            pair = np.flatnonzero(self._condition[query] == number)
            if not len(pair):
                continue
            rows, place = np.unique(row[pair], return_inverse=True)
            passing, failed = _passing(elements, rows, where, filters, self.space)
            keep[pair] = passing[place]
            for error, judged in failed:
                failures.note(query[pair[judged[place]]], error)
        return keep


def numbered(values: Sequence) -> tuple[list, np.ndarray]:
    """Return the distinct values and, for each value, its number among them (int64)."""
    numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return list(numbers), np.array([numbers[value] for value in values], dtype=np.int64)


def _passing(elements, rows, where, filters, space):
    """Tell which elements at `rows` pass a filter over properties and others besides; and what failed on which."""
    keep, failed = np.ones(len(rows), dtype=bool), []
    if where is not None:
        keep &= passes(where, elements.cold(rows)["properties"])
    for entry in filters:
        left = np.flatnonzero(keep)
        judged = _judged(elements, rows[left], entry, space)
        if judged.error is not None:
            failed.append((judged.error, keep.copy()))
        keep[left] = judged.passes
    return keep, failed


def _judged(elements, rows, entry, space):
    if isinstance(entry, BoxFilter):
        return Judged(intersects(elements.bounds, rows, np.array([entry.box]), np.zeros_like(rows), space), None)
    if isinstance(entry, KeyFilter):
        return Judged(elements.cold(rows)["key"].to_numpy() == entry.key, None)
    return evaluate_element(entry.udf, elements.batch(rows), entry.argument)

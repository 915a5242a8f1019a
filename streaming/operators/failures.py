"""Which queries lost elements to a user-defined filter that failed, and why."""

import numpy as np


class Failures:
    """Collects failures while elements are matched; the first of each query is kept.

    Attributes
    ----------
    errors : dict of int to str
        What failed and why, by query.

    Examples
    --------
    >>> failures = Failures()
    >>> failures.note(np.array([7, 7, 9]), "the filter good failed: KeyError: 'name'")
    >>> failures.note(np.array([9]), None)
    >>> failures.errors[9]
    "the filter good failed: KeyError: 'name'"
    """

    def __init__(self) -> None:
        self.errors: dict[int, str] = {}

    def note(self, queries: np.ndarray, error: str | None) -> None:
        """Note that a filter failed on elements of queries, which may repeat; without an error nothing did."""
        if error is not None:
            for query in np.unique(queries).tolist():
                self.errors.setdefault(query, error)

    def add(self, others: "Failures", numbers: np.ndarray) -> None:
        """Add failures that are known by the positions of queries, given their numbers."""
        for position, error in others.errors.items():
            self.errors.setdefault(int(numbers[position]), error)

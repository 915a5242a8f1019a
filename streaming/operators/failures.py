"""Which filters failed on elements of queries, and what the evaluation of each query cost."""

import numpy as np

from streaming.operators.runs import find


class Failures:
    """Collects, while elements are matched, the first failure of each query, and what each query cost.

    Queries that are evaluated together share the time that is measured, each by the work that it causes: the candidates
    that are looked at for it.

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
    >>> failures.share(np.array([2, 2, 0, 2]), 1.0)
    >>> failures.seconds
    {0: 0.25, 2: 0.75}
    """

    def __init__(self) -> None:
        self.errors: dict[int, str] = {}
        self._spent: list[tuple[np.ndarray, np.ndarray]] = []

    def note(self, queries: np.ndarray, error: str | None) -> None:
        """Note that a filter failed on elements of queries, which may repeat; without an error nothing did."""
        if error is not None:
            for query in np.unique(queries).tolist():
                self.errors.setdefault(query, error)

    def share(self, queries: np.ndarray, seconds: float, among: np.ndarray | None = None) -> None:
        """Note what queries cost together; those that repeat have as many shares.

        They are given by their positions, or by their numbers, some of those `among` (ascending); others cost nothing.
        """
        if not len(queries):
            return
        each = seconds / len(queries)
        if among is not None:
            position, known = find(among, queries)
            queries = position[known]
        work = np.bincount(queries)
        known = np.flatnonzero(work)
        self.charge(known if among is None else among[known], each * work[known])

    def charge(self, queries: np.ndarray, seconds: np.ndarray) -> None:
        """Note what each of some queries (Q,) cost, float64 of shape (Q,)."""
        self._spent.append((queries, seconds))

    def add(self, others: "Failures", numbers: np.ndarray) -> None:
        """Add what is known by the positions of queries, given their numbers."""
        for position, error in others.errors.items():
            self.errors.setdefault(int(numbers[position]), error)
        for queries, seconds in others._spent:
            self.charge(numbers[queries], seconds)

    @property
    def seconds(self) -> dict[int, float]:
        """What each query cost, by query."""
        queries, seconds = self.costs()
        return dict(zip(queries.tolist(), seconds.tolist(), strict=True))

    def costs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the queries that cost anything, int64, ascending, and how many seconds each, float64."""
        spent = [(np.empty(0, dtype=np.int64), np.empty(0)), *self._spent]
        queries, seconds = (np.concatenate(parts) for parts in zip(*spent, strict=True))
        queries, place = np.unique(queries, return_inverse=True)
        return queries, np.bincount(place, weights=seconds, minlength=len(queries))

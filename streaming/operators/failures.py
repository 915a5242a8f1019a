"""Which queries lost elements to something of theirs that failed, why, and what their evaluation cost."""

import logging
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter
from typing import TypeVar

import numpy as np
import polars as pl

T = TypeVar("T")

logger = logging.getLogger(__name__)

MAX_REASON_CHARACTERS = 500


class Failures:
    """Collects failures while elements are matched; the first of each query is kept.

    Attributes
    ----------
    errors : dict of int to str
        What failed and why, by query.
    seconds : dict of int to float
        What was measured of each query's evaluation; those that are evaluated together share it.

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
        self.seconds: dict[int, float] = defaultdict(float)

    def note(self, queries: np.ndarray, error: str | None) -> None:
        """Note that a filter failed on elements of queries, which may repeat; without an error nothing did."""
        if error is not None:
            for query in np.unique(queries).tolist():
                self.errors.setdefault(query, error)

    def attempt(self, queries: np.ndarray, what: str, step: Callable[[], T]) -> T | None:
        """Return what a step returns that is of some queries alone; None where it raises, which is their failure.

        `queries` come once each. What the machine lacks (memory, files) is the engine's, and is raised. The time is
        noted as theirs.

        Examples
        --------
        >>> failures = Failures()
        >>> failures.attempt(np.array([7]), "the join", lambda: 1 / 0)
        >>> failures.errors
        {7: 'the join failed: ZeroDivisionError: division by zero'}
        """
        began = perf_counter()
        try:
            return step()
        except (OSError, MemoryError):
            raise
        # Whatever one query is made of, the others are answered. A panic of polars is no Exception.
        except (Exception, pl.exceptions.PanicException) as error:
            logger.exception("%s of a query failed", what)
            self.note(queries, f"{what} failed: {type(error).__name__}: {error!s:.{MAX_REASON_CHARACTERS}}")
            return None
        finally:
            self.spend(queries, perf_counter() - began)

    def add(self, others: "Failures", numbers: np.ndarray) -> None:
        """Add failures that are known by the positions of queries, given their numbers."""
        for position, error in others.errors.items():
            self.errors.setdefault(int(numbers[position]), error)
        for position, seconds in others.seconds.items():
            self.seconds[int(numbers[position])] += seconds

    def spend(self, queries: np.ndarray, seconds: float) -> None:
        """Note what the evaluation of queries cost together; they share it."""
        for query in queries.tolist():
            self.seconds[query] += seconds / len(queries)

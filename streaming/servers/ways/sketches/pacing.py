"""Which queries of sketches are answered at a tick, so that large ones do not hold up all other answers.

The queries that look at few leaves are answered at every tick. The others take turns: each waits until the answers
before it were paid for. What an answer costs is counted in leaves, and not measured, so a batch that runs again answers
the same queries.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

# The queries of a tick that together look at so many leaves need no turn; it takes some 40 ms.
LEAVES_A_TICK = 20_000
# To look at a leaf, to send it and to answer from it takes about 2 µs, and may take a twentieth of the time.
US_A_LEAF = 40
# Turns that nobody took are kept for so long.
KEPT_US = 1_000_000


@dataclass(frozen=True)
class SketchPace:
    """What is known of the costs and turns of queries of sketches.

    Parameters
    ----------
    costs : mapping of int to int
        How many leaves the last answer to each query took, in all regions.
    asked_us : mapping of int to int
        When each query was asked last.
    free_us : int
        From when on the next large query may be answered.
    """

    costs: Mapping[int, int] = field(default_factory=dict)
    asked_us: Mapping[int, int] = field(default_factory=dict)
    free_us: int = 0

    def due(self, queries: Collection[int], now_us: int) -> set[int]:
        """Return which of the queries that wait for a tick are answered at this one.

        Examples
        --------
        >>> pace = SketchPace({1: 10, 2: 500_000, 3: 500_000}).after([2, 3], [2, 3], {2: 500_000}, 1_000_000)
        >>> [sorted(pace.due([1, 2, 3], second * 1_000_000)) for second in (2, 19, 20)]
        [[1], [1], [1, 2]]
        """
        small = self._small(queries)
        large = sorted(set(queries) - small, key=lambda query: (self.asked_us.get(query, 0), query))
        free_us, turns = max(self.free_us, now_us - KEPT_US), set()
        for query in large:
            if free_us > now_us:
                break
            turns.add(query)
            free_us += US_A_LEAF * self.costs.get(query, 0)
        return small | turns

    def after(
        self, asked: Iterable[int], queries: Collection[int], costs: Mapping[int, int], now_us: int
    ) -> "SketchPace":
        """Return what is known after some queries were asked.

        Parameters
        ----------
        asked : iterable of int
            The queries that had a turn, those that failed among them.
        queries : collection of int
            All queries that wait for ticks. Others, which are asked once, take no turns, and are forgotten.
        costs : mapping of int to int
            Of the answers.
        now_us : int
        """
        present = set(queries)
        told = {query: cost for query, cost in costs.items() if query in present}
        small = self._small(queries)
        paid = sum(cost for query, cost in told.items() if query not in small or cost > LEAVES_A_TICK)
        free_us = max(self.free_us, now_us - KEPT_US) + US_A_LEAF * paid
        known = {query: cost for query, cost in {**self.costs, **told}.items() if query in present}
        times = {**self.asked_us, **dict.fromkeys(asked, now_us)}
        return SketchPace(known, {query: at for query, at in times.items() if query in present}, free_us)

    def _small(self, queries: Collection[int]) -> set[int]:
        """Return the cheapest queries, as many as fit into one tick."""
        ordered = sorted(set(queries), key=lambda query: (self.costs.get(query, 0), query))
        reached = accumulate(self.costs.get(query, 0) for query in ordered)
        return {query for query, leaves in zip(ordered, reached, strict=True) if leaves <= LEAVES_A_TICK}

"""Pages of answers: what the servers of the engine tell of stored elements, in the order of time."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.backtest import Playing
from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.results import joined_columns, result_schema
from streaming.spaces import Space

SECOND_US = 1_000_000


@dataclass(frozen=True)
class AnswerPage:
    """A page of answers.

    Parameters
    ----------
    rows : pyarrow.Table
        The columns of `results.joined_columns`, and at_us : int64, when the row was told. Ordered by `at_us`, then
        query. If the page begins, the rows that were told at `from_us` are all members of the answers at that time.
    begins : bool
        Whether nothing was told before.
    from_us, until_us : int
        The page tells what happened after `from_us`, up to and including `until_us`.
    """

    rows: pa.Table
    begins: bool
    from_us: int
    until_us: int


def told_at_once(plan: Plan) -> bool:
    """Return whether an answer follows from where objects are: no encounter, track, rule or join over event time."""
    return kind_of(plan).evaluation(plan).told_at_once


def scene(playing: Playing, elements: Iterable[pa.Table], queries: Iterable[int]) -> AnswerPage:
    """Return the answers at the beginning of what is played, as a page that tells nothing after it.

    Parameters
    ----------
    playing, elements, queries
        As of `AnswerPages`.
    """
    first = next(playing.play(elements))
    told = _told(first.rows, np.array(sorted(queries), dtype=np.int64), first.time_us)
    return AnswerPage(_ordered(told), True, first.time_us, first.time_us)


class AnswerPages:
    """Plays elements as far as pages are asked for.

    Parameters
    ----------
    playing : Playing
        Without limits of its own: each page has some.
    elements : iterable of pyarrow.Table
        See `Playing.play`.
    queries : collection of int
        Whose answers are told. A rule is played with the queries that it names, which may not be asked for.
    now_s : callable, optional
        Returns the time that limits a page, in seconds.
    """

    def __init__(
        self,
        playing: Playing,
        elements: Iterable[pa.Table],
        queries: Iterable[int],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._played, self._queries = playing.play(elements), np.array(sorted(queries), dtype=np.int64)
        self._space, self._now_s = playing.asked.space, now_s
        self._end_us = playing.asked.span[1]
        self.until_us, self._begun = playing.asked.span[0], False

    def page(self, to_us: int, rows: int, seconds: float) -> AnswerPage:
        """Return the next page.

        Parameters
        ----------
        to_us : int
            Up to when, at most.
        rows, seconds : int and float
            The page ends at the first second of the replay after one of these is reached.
        """
        from_us, begins, deadline_s = self.until_us, not self._begun, self._now_s() + seconds
        told = [no_rows(self._space)]
        while self.until_us < to_us and sum(table.num_rows for table in told) < rows and self._now_s() < deadline_s:
            self._advance(told)
        return AnswerPage(_ordered(pa.concat_tables(told)), begins, from_us, self.until_us)

    def _advance(self, told: list[pa.Table]) -> None:
        """Play to the next time at which the clock goes on; nothing is told of the rest of that second any more."""
        before_us = self.until_us
        for played in self._played:
            # A batch that is not the last one of its second does not move the clock: it is told with the last one.
            later = self._begun and played.time_us <= before_us
            at_us = before_us + SECOND_US if later else played.time_us
            told.append(_told(played.rows, self._queries, at_us))
            self._begun = True
            if played.time_us > before_us:
                self.until_us = played.time_us
                return
        self.until_us = self._end_us


def _told(rows: pa.Table, queries: np.ndarray, at_us: int) -> pa.Table:
    """Return the rows of some queries, with when they are told."""
    rows = rows.filter(pa.array(np.isin(rows["query"].to_numpy(), queries)))
    return rows.append_column("at_us", pa.array(np.full(rows.num_rows, at_us), pa.int64()))


def _ordered(told: pa.Table) -> pa.Table:
    """Return rows as a page has them."""
    told = told.take(pa.array(np.lexsort((told["query"].to_numpy(), told["at_us"].to_numpy()))))
    return joined_columns(told.drop_columns(["at_us"])).append_column("at_us", told["at_us"])


def no_rows(space: Space) -> pa.Table:
    """Return a page's table without rows."""
    return result_schema(space).append(pa.field("at_us", pa.int64())).empty_table()

"""The assembler of nearest neighbours: it ranks what participating servers find in search regions, and steers these.

References
----------
PLACE* (2007), section 5 and table 3: the search region is larger than the answer by a factor (1 + alpha), grows when it
holds fewer than k objects, and shrinks when it holds many more.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from streaming.operators.runs import find
from streaming.plans import NearestPlan
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.participant import CANDIDATES, Partial

ANSWERS: dict[str, Any] = CANDIDATES | {"rank": pl.Int32}
CHANGES: dict[str, Any] = ANSWERS | {"sign": pl.Int8, "moved": pl.Boolean}
# A search region is left alone while it is larger than the answer by a quarter of alpha, and no larger than this times
# what it should be: adapting one costs every participating server a look at all that is in it.
LARGER = 1.5
# A circle with fewer than k objects becomes larger by this at least, and after so many times takes in everything.
LEAST_GROWTH = 1.2
MOST_GROWTHS = 8
PAIRS_AT_ONCE = 10_000_000
QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Neighbourhoods:
    """What the assembler keeps of kNN queries.

    Parameters
    ----------
    candidates : polars.DataFrame
        All objects in search regions, `CANDIDATES`.
    answers : polars.DataFrame
        As they were told, `ANSWERS`.
    """

    candidates: pl.DataFrame
    answers: pl.DataFrame

    @classmethod
    def none(cls) -> "Neighbourhoods":
        """Return what is kept while there are no such queries."""
        return cls(pl.DataFrame(schema=CANDIDATES), pl.DataFrame(schema=ANSWERS))


@dataclass(frozen=True)
class Searches:
    """The kNN queries of a micro-batch, Q of them.

    Parameters
    ----------
    ids : ndarray of int64
        Ascending.
    plans : sequence of NearestPlan
    placed, shifted : ndarray of bool
        Whether each is anywhere, and whether it is elsewhere than before, or new.
    reach : ndarray of float64
        The radius of each one's search region in this batch; NaN where it has none yet.
    guess : ndarray of float64
        A radius to begin with.
    farthest : ndarray of float64
        How far each may look.
    objects : int
        How many there are in the space.
    search : callable
        Given positions of queries and radii, returns all objects that are no farther away: `CANDIDATES`.
    """

    ids: np.ndarray
    plans: Sequence[NearestPlan]
    placed: np.ndarray
    shifted: np.ndarray
    reach: np.ndarray
    guess: np.ndarray
    farthest: np.ndarray
    objects: int
    search: Callable[[np.ndarray, np.ndarray], pl.DataFrame]

    @property
    def k(self) -> np.ndarray:
        """How many each asks for."""
        return np.array([plan.k for plan in self.plans], dtype=np.int64)

    @property
    def alpha(self) -> np.ndarray:
        """How much larger than its answer each one's search region is to be."""
        return np.array([plan.alpha for plan in self.plans], dtype=np.float64)


def step(
    state: Neighbourhoods, partials: Sequence[Partial], searches: Searches
) -> tuple[Neighbourhoods, pl.DataFrame, np.ndarray]:
    """Rank the objects in search regions; look farther where there are fewer than k.

    Returns
    -------
    state : Neighbourhoods
    changes : polars.DataFrame
        What changed of answers: `CHANGES`.
    reach : ndarray of float64, shape (Q,)
        The radii of search regions from the next batch on.
    """
    removed = pl.concat([partial.removed for partial in partials])
    added = pl.concat([partial.added for partial in partials])
    still = searches.ids[~searches.shifted]
    kept = state.candidates.filter(pl.col("query").is_in(still.tolist()))
    kept = kept.join(removed, on=["query", "key"], how="anti")
    candidates = pl.concat([kept, added.select(list(CANDIDATES))])
    concerned = np.unique(np.r_[removed["query"].to_numpy(), added["query"].to_numpy(), searches.ids[searches.shifted]])
    ended = np.setdiff1d(state.answers["query"].unique().to_numpy(), searches.ids)
    found, position = ranked(_of(candidates, concerned), searches), find(searches.ids, concerned)[0]
    short = position[_short(found, searches, position)]
    if len(short):
        found = pl.concat([found.filter(~_among(searches.ids[short])), ranked(_searched(searches, short), searches)])
    reach = _steered(found, searches, position, short)
    altered = np.r_[concerned, ended]
    changes = _changes(_of(state.answers, altered), found, removed, added)
    answers = pl.concat([state.answers.filter(~_among(altered)), found])
    return Neighbourhoods(candidates, answers), changes, reach


def ranked(candidates: pl.DataFrame, searches: Searches) -> pl.DataFrame:
    """Return the k nearest candidates of each query with their ranks, `ANSWERS`; of equals that of the lower key."""
    query, key, distance = (candidates[name].to_numpy() for name in CANDIDATES)
    order = np.lexsort((key, distance, query))
    ordered = query[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(first, np.diff(np.r_[first, len(ordered)])) + 1
    nearest = rank <= searches.k[find(searches.ids, ordered)[0]]
    return candidates[order[nearest]].with_columns(rank=pl.Series(rank[nearest], dtype=pl.Int32))


def _of(frame, queries):
    return frame.filter(_among(queries))


def _among(queries):
    return pl.col("query").is_in(queries.tolist())


def _counts(found, queries):
    """Return how many rows each of some queries (ascending) has, and the largest distance among them."""
    query = found["query"].to_numpy()
    position = find(queries, query)[0]
    count, last = np.zeros(len(queries), dtype=np.int64), np.full(len(queries), np.nan)
    np.add.at(count, position, 1)
    np.fmax.at(last, position, found["distance"].to_numpy())
    return count, last


def _short(found, searches, position):
    """Tell which queries, by their positions, have fewer than k candidates although they may look farther."""
    count = _counts(found, searches.ids[position])[0]
    reach = searches.reach[position]
    farther = np.isnan(reach) | (reach < searches.farthest[position])
    return searches.placed[position] & (count < searches.k[position]) & farther


def _searched(searches, short):
    """Return the candidates of queries, by positions: at least k, or all that there are as far as they may look."""
    step = min(QUERIES_AT_ONCE, 1 + PAIRS_AT_ONCE // max(1, searches.objects))
    starts = range(0, len(short), step)
    return pl.concat([frame for start in starts for frame in _widening(searches, short[start : start + step])])


def _widening(searches, left):
    """Yield the candidates of queries, by positions, as soon as their circles are wide enough."""
    reach, farthest = searches.reach.copy(), searches.farthest
    unknown = np.isnan(reach) | (reach <= 0)
    reach[unknown] = searches.guess[unknown]
    for growths in itertools.count():
        if not len(left):
            return
        reach[left] = np.minimum(reach[left] if growths < MOST_GROWTHS else np.inf, farthest[left])
        found = searches.search(left, reach[left])
        count = _counts(found, searches.ids[left])[0]
        enough = (count >= searches.k[left]) | (reach[left] >= farthest[left])
        yield _of(found, searches.ids[left[enough]])
        left, count = left[~enough], count[~enough]
        expected = np.sqrt(searches.k[left] / np.maximum(count, 1))
        reach[left] *= (1 + searches.alpha[left]) * np.maximum(expected, LEAST_GROWTH)


def _steered(found, searches, position, short):
    """Return the radii of search regions from the next batch on."""
    ids, k = searches.ids[position], searches.k[position]
    count, last = _counts(found, ids)
    reach, full, alpha = searches.reach.copy(), count >= k, searches.alpha[position]
    wanted = np.where(full, (1 + alpha) * last, np.inf)
    with np.errstate(invalid="ignore"):
        apt = (reach[position] >= (1 + alpha / 4) * last) & (reach[position] <= LARGER * wanted)
    adapted = np.isin(position, short) | (full & ~apt)
    reach[position] = np.where(adapted, np.minimum(wanted, searches.farthest[position]), reach[position])
    reach[~searches.placed] = np.nan
    return reach


def _changes(old, new, removed, added):
    """Compare answers; what stays is a change where the object moved, or its distance or rank is another."""
    moved = pl.concat([removed.select("query", "key"), added.filter("moved").select("query", "key")]).unique()
    both = old.join(new, on=["query", "key"], how="full", suffix="_new", coalesce=True)
    both = both.join(moved.with_columns(moved=pl.lit(True)), on=["query", "key"], how="left")
    was, now = pl.col("rank").is_not_null(), pl.col("rank_new").is_not_null()
    sign = pl.when(was & now).then(STAYED).when(now).then(ENTERED).otherwise(LEFT).cast(pl.Int8)
    elsewhere = (pl.col("rank") != pl.col("rank_new")) | (pl.col("distance") != pl.col("distance_new"))
    told = both.filter(pl.col("moved").fill_null(False) | ~(was & now) | elsewhere)
    return told.select(
        "query", "key", distance="distance_new", rank="rank_new", sign=sign, moved=pl.col("moved").fill_null(False)
    )

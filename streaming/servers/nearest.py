"""The assembler of nearest neighbours: it ranks what participating servers find in search regions, and steers these.

References
----------
PLACE* (2007), section 5 and table 3: the search region is larger than the answer by a factor (1 + alpha), grows when it
holds fewer than k objects, and shrinks when it holds many more.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from streaming.operators.runs import expand, find
from streaming.plans import NearestPlan
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.participant import Candidates, Partial

# A search region is left alone while it is larger than the answer by a quarter of alpha, and no larger than this times
# what it should be: adapting one costs every participating server a look at all that is in it.
LARGER = 1.5
# A circle with fewer than k objects becomes larger by this at least, and after so many times takes in everything.
LEAST_GROWTH = 1.2
MOST_GROWTHS = 8
PAIRS_AT_ONCE = 10_000_000
QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Ranked:
    """Members of answers of kNN queries with their ranks, arrays of shape (P,), ordered by query and key."""

    query: np.ndarray
    key: np.ndarray
    distance: np.ndarray
    rank: np.ndarray

    def take(self, rows: np.ndarray) -> "Ranked":
        """Return the members at positions or of a mask."""
        return Ranked(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True)
class Neighbourhoods:
    """What the assembler keeps of kNN queries.

    Parameters
    ----------
    candidates : Candidates
        All objects in search regions, ordered by query and key.
    answers : Ranked
        As they were told.
    """

    candidates: Candidates
    answers: Ranked

    @classmethod
    def none(cls) -> "Neighbourhoods":
        """Return what is kept while there are no such queries."""
        none = Candidates.none()
        return cls(none, Ranked(none.query, none.key, none.distance, np.empty(0, dtype=np.int32)))


@dataclass(frozen=True)
class Changes:
    """What changed of answers: members, ranks and distances as they are now, 0 and NaN of those that left; signs."""

    members: Ranked
    sign: np.ndarray


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
    guess : callable
        Returns radii to begin with, float64 of shape (Q,).
    farthest : ndarray of float64
        How far each may look.
    objects : int
        How many there are in the space.
    search : callable
        Given positions of queries and radii, returns all objects that are no farther away.
    """

    ids: np.ndarray
    plans: Sequence[NearestPlan]
    placed: np.ndarray
    shifted: np.ndarray
    reach: np.ndarray
    guess: Callable[[], np.ndarray]
    farthest: np.ndarray
    objects: int
    search: Callable[[np.ndarray, np.ndarray], Candidates]

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
) -> tuple[Neighbourhoods, Changes, np.ndarray]:
    """Rank the objects in search regions; look farther where there are fewer than k.

    Returns
    -------
    state : Neighbourhoods
    changes : Changes
    reach : ndarray of float64, shape (Q,)
        The radii of search regions from the next batch on.
    """
    removed = Candidates.together([partial.removed for partial in partials])
    added = Candidates.together([partial.added for partial in partials])
    moved = np.concatenate([np.ones(len(removed), dtype=bool), *(partial.moved for partial in partials)])
    still = searches.ids[~searches.shifted]
    candidates = _updated(state.candidates.take(np.isin(state.candidates.query, still)), removed, added)
    concerned = np.unique(np.r_[removed.query, added.query, searches.ids[searches.shifted]])
    ended = np.setdiff1d(state.answers.query, searches.ids)
    found = _ranked(candidates.take(np.isin(candidates.query, concerned)), searches)
    position = find(searches.ids, concerned)[0]
    short = position[_short(found, searches, position)]
    if len(short):
        found = _together([found.take(~np.isin(found.query, searches.ids[short])), *_searched(searches, short)])
        found = found.take(np.argsort(found.query, kind="stable"))
    reach = _steered(found, searches, position, short)
    altered = np.isin(state.answers.query, np.r_[concerned, ended])
    touched = Candidates.together([removed, added]).take(moved)
    changes = _changes(state.answers.take(altered), found, touched)
    answers = _together([state.answers.take(~altered), found])
    answers = answers.take(np.argsort(answers.query, kind="stable"))
    # Each query's members come from one part, so their order by key holds.
    return Neighbourhoods(candidates, answers), changes, reach


def _updated(candidates, removed, added):
    """Return candidates without those that were removed, and with those that were added."""
    position, present = _located(candidates, removed)
    keep = np.ones(len(candidates), dtype=bool)
    keep[position[present]] = False
    candidates = candidates.take(keep)
    added = added.take(np.lexsort((added.key, added.query)))
    return candidates.inserted(_located(candidates, added)[0], added)


def _located(members, wanted):
    """Return where members would stand in others that are ordered by query and key, and whether they stand there."""
    low = np.searchsorted(members.query, wanted.query, "left")
    stop = high = np.searchsorted(members.query, wanted.query, "right")
    while (low < high).any():
        middle = (low + high) // 2
        before = (low < high) & (members.key[np.minimum(middle, len(members.key) - 1)] < wanted.key)
        low, high = np.where(before, middle + 1, low), np.where(before | (low >= high), high, middle)
    present = low < stop
    present[present] = members.key[low[present]] == wanted.key[present]
    return low, present


def _ranked(candidates, searches):
    """Return the k nearest candidates, ordered by query and key, of each query; of equals that of the lower key."""
    query = find(searches.ids, candidates.query)[0]
    count = np.bincount(query, minlength=len(searches.ids))
    rank = np.empty(len(query), dtype=np.int32)
    rank[_by_distance(query, candidates, len(searches.ids))] = expand(np.zeros_like(count), count)[1] + 1
    nearest = rank <= np.repeat(searches.k, count)
    found = candidates.take(nearest)
    return Ranked(found.query, found.key, found.distance, rank[nearest])


def _by_distance(query, candidates, queries):
    """Return the order of candidates by query (their positions), distance and key."""
    # Two sorts of plain numbers take a fifth of the time of one by three columns, which only equal distances need.
    order = np.argsort(candidates.distance)
    order = order[np.argsort(query[order].astype(np.uint16 if queries < 2**16 else np.int64), kind="stable")]
    ordered, distance = query[order], candidates.distance[order]
    tied = (ordered[1:] == ordered[:-1]) & (distance[1:] == distance[:-1])
    if tied.any():
        rows = np.flatnonzero(np.isin(query, ordered[1:][tied]))
        again = np.lexsort((candidates.key[rows], candidates.distance[rows], query[rows]))
        order[np.isin(ordered, ordered[1:][tied])] = rows[again]
    return order


def _counts(found, queries):
    """Return how many members each of some queries (ascending) has, and the largest distance among them."""
    position = find(queries, found.query)[0]
    count, last = np.bincount(position, minlength=len(queries)), np.full(len(queries), np.nan)
    np.fmax.at(last, position, found.distance)
    return count, last


def _short(found, searches, position):
    """Tell which queries, by their positions, have fewer than k candidates although they may look farther."""
    count = _counts(found, searches.ids[position])[0]
    reach = searches.reach[position]
    farther = np.isnan(reach) | (reach < searches.farthest[position])
    return searches.placed[position] & (count < searches.k[position]) & farther


def _searched(searches, short):
    """Yield the answers of queries, by positions, that look farther than their search regions reach."""
    step = min(QUERIES_AT_ONCE, 1 + PAIRS_AT_ONCE // max(1, searches.objects))
    for start in range(0, len(short), step):
        yield from _widening(searches, short[start : start + step])


def _widening(searches, left) -> Iterable[Ranked]:
    """Yield the answers of queries, by positions, as soon as their circles are wide enough."""
    reach, farthest = searches.reach.copy(), searches.farthest
    unknown = np.isnan(reach) | (reach <= 0)
    if unknown[left].any():
        reach[unknown] = searches.guess()[unknown]
    for growths in itertools.count():
        if not len(left):
            return
        reach[left] = np.minimum(reach[left] if growths < MOST_GROWTHS else np.inf, farthest[left])
        found = searches.search(left, reach[left])
        found = found.take(np.lexsort((found.key, found.query)))
        count = _counts(found, searches.ids[left])[0]
        enough = (count >= searches.k[left]) | (reach[left] >= farthest[left])
        yield _ranked(found.take(np.isin(found.query, searches.ids[left[enough]])), searches)
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


def _together(parts):
    return Ranked(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Ranked)))


def _changes(old, new, touched):
    """Compare answers; what stays is a change where the object moved, or its distance or rank is another."""
    touched = touched.take(np.lexsort((touched.key, touched.query)))
    place, was = _located(old, new)
    same = np.zeros(len(new.key), dtype=bool)
    same[was] = (old.rank[place[was]] == new.rank[was]) & (old.distance[place[was]] == new.distance[was])
    same &= ~_located(touched, new)[1]
    gone = old.take(~_located(new, old)[1])
    gone = Ranked(gone.query, gone.key, np.full(len(gone.key), np.nan), np.zeros(len(gone.key), dtype=np.int32))
    sign = np.where(was, STAYED, ENTERED).astype(np.int8)[~same]
    return Changes(_together([gone, new.take(~same)]), np.r_[np.full(len(gone.key), LEFT, dtype=np.int8), sign])

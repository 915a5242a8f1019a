"""The assembler of nearest neighbours: it ranks the objects in search regions, and adapts the radii of these.

References
----------
PLACE* (2007), section 5 and table 3: the search region is larger than the answer by a factor (1 + alpha), grows when it
holds fewer than k objects, and shrinks when it holds many more.
"""

import functools
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter

import numpy as np

from streaming.kinds.knn.plan import NearestPlan
from streaming.operators.runs import distinct, expand, find
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.ways.moving.partial import Candidates, Partial

# A search region keeps its radius while that is larger than the answer's by at least a quarter of alpha, and at most
# this many times what it should be: after a change every participating server looks at all objects in the region.
LARGER = 1.5
# A circle with fewer than k objects grows at least by this factor. After `MOST_GROWTHS` times, the search covers all
# that the query may look at.
LEAST_GROWTH = 1.2
MOST_GROWTHS = 8
PAIRS_AT_ONCE = 10_000_000
QUERIES_AT_ONCE = 256


@dataclass(frozen=True)
class Ranked:
    """Candidates of kNN queries with their ranks, arrays of shape (P,).

    A candidate that is in a search region but not among the k nearest has rank 0.
    """

    query: np.ndarray
    key: np.ndarray
    distance: np.ndarray
    rank: np.ndarray

    @classmethod
    def none(cls) -> "Ranked":
        """Return no candidates."""
        none = Candidates.none()
        return cls(none.query, none.key, none.distance, np.empty(0, dtype=np.int32))

    def take(self, rows: np.ndarray) -> "Ranked":
        """Return the candidates at `rows`, positions or a mask."""
        return Ranked(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True)
class Ranking:
    """The candidates of kNN queries, and the answers among them; the order of the candidates gives their ranks.

    Parameters
    ----------
    query : ndarray of int64, shape (R,)
        The queries that have candidates, or had some, ascending.
    count : ndarray of int64, shape (R,)
        How many candidates each query has.
    members : ndarray of int64, shape (R,)
        How many of these, the nearest, are its answer.
    key, distance : ndarray of int64 and of float64, shape (P,)
        The candidates of one query after the other, by distance. Of equals, the lower key is nearer.
    """

    query: np.ndarray
    count: np.ndarray
    members: np.ndarray
    key: np.ndarray
    distance: np.ndarray

    @classmethod
    def none(cls) -> "Ranking":
        """Return no candidates."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none, none, np.empty(0))

    @classmethod
    def of(cls, ranked: Ranked) -> "Ranking":
        """Return candidates, given in any order."""
        ranked = ranked.take(np.lexsort((ranked.key, ranked.distance, ranked.query)))
        query, count = np.unique(ranked.query, return_counts=True)
        members = np.bincount(np.searchsorted(query, ranked.query[ranked.rank > 0]), minlength=len(query))
        return cls(query, count, members, ranked.key, ranked.distance)

    @functools.cached_property
    def start(self) -> np.ndarray:
        """The position of each query's first candidate, int64 of shape (R,)."""
        return np.cumsum(self.count) - self.count

    def rows(self, chosen: np.ndarray) -> np.ndarray:
        """Return the positions of the candidates of some queries, given the positions of these, ascending."""
        return expand(self.start[chosen], self.count[chosen])[1]

    @functools.cached_property
    def ranks(self) -> np.ndarray:
        """The rank of each candidate, int64 of shape (P,); 0 if it is no member."""
        rank = np.arange(1, len(self.key) + 1) - np.repeat(self.start, self.count)
        rank[rank > np.repeat(self.members, self.count)] = 0
        return rank

    def answers(self, queries: np.ndarray) -> Ranked:
        """Return the members of the answers of some queries."""
        chosen = np.flatnonzero(np.isin(self.query, queries))
        run, place = expand(self.start[chosen], self.members[chosen])
        rank = place - self.start[chosen][run] + 1
        return Ranked(self.query[chosen][run], self.key[place], self.distance[place], rank.astype(np.int32))

    def without(self, queries: np.ndarray) -> "Ranking":
        """Return the candidates of other queries."""
        left = np.flatnonzero(~np.isin(self.query, queries))
        rows = self.rows(left)
        return Ranking(self.query[left], self.count[left], self.members[left], self.key[rows], self.distance[rows])

    def last(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how many members queries (Q,) have, and the largest distance among these (NaN without), (Q,) each."""
        position, known = find(self.query, ids)
        count, last = np.zeros(len(ids), dtype=np.int64), np.full(len(ids), np.nan)
        count[known] = self.members[position[known]]
        full = np.flatnonzero(count)
        last[full] = self.distance[self.start[position[full]] + count[full] - 1]
        return count, last


@dataclass(frozen=True)
class NearestChanges:
    """The changes of kNN answers.

    Parameters
    ----------
    members : Ranked
        With ranks and distances as they are now; 0 and NaN for those that left.
    sign : ndarray of int8
    moved : ndarray of bool
        Whether the object is known to have moved.
    """

    members: Ranked
    sign: np.ndarray
    moved: np.ndarray


@dataclass(frozen=True)
class Searches:
    """The kNN queries of a micro-batch, Q of them.

    Parameters
    ----------
    ids : ndarray of int64
        Ascending.
    plans : sequence of NearestPlan
    placed, shifted, carried : ndarray of bool
        Whether each query has a place; whether its search region covers another place than before, or is new; and
        whether the query moved while its search region, being infinite, covers the same.
    reach : ndarray of float64
        The radius of each query's search region in this batch; NaN where it has none yet.
    guess : callable
        Returns radii to begin with, float64 of shape (Q,).
    farthest : ndarray of float64
        How far each query may look.
    objects : int
        The number of objects in the space.
    search : callable
        Given positions of queries and radii, returns all objects within these radii.
    measure : callable
        Given positions of queries and keys of objects, (P,) each, returns their distances.
    share : callable
        Takes a mask (Q,) of the queries that were ranked, and the seconds that this took.
    quiet : ndarray of bool
        Which queries report membership alone.
    """

    ids: np.ndarray
    plans: Sequence[NearestPlan]
    placed: np.ndarray
    shifted: np.ndarray
    carried: np.ndarray
    reach: np.ndarray
    guess: Callable[[], np.ndarray]
    farthest: np.ndarray
    objects: int
    search: Callable[[np.ndarray, np.ndarray], Candidates]
    measure: Callable[[np.ndarray, np.ndarray], np.ndarray]
    share: Callable[[np.ndarray, float], None]
    quiet: np.ndarray

    @functools.cached_property
    def k(self) -> np.ndarray:
        """How many neighbours each query asks for."""
        return np.array([plan.k for plan in self.plans], dtype=np.int64)

    @functools.cached_property
    def alpha(self) -> np.ndarray:
        """By which fraction of its answer's radius each search region is to be larger."""
        return np.array([plan.alpha for plan in self.plans], dtype=np.float64)


def step(
    ranking: Ranking, partials: Sequence[Partial], searches: Searches
) -> tuple[Ranking, NearestChanges, np.ndarray]:
    """Rank the objects in search regions; search farther for queries that have fewer than k.

    Parameters
    ----------
    ranking : Ranking
        All objects in search regions, and the answers among them, as they were reported.
    partials : sequence of Partial
    searches : Searches

    Returns
    -------
    ranking : Ranking
    changes : NearestChanges
    reach : ndarray of float64, shape (Q,)
        The radii of search regions from the next batch on.
    """
    began = perf_counter()
    removed = Candidates.together([partial.removed for partial in partials])
    added = Candidates.together([partial.added for partial in partials])
    moved = np.concatenate([np.zeros(0, dtype=bool), *(partial.moved for partial in partials)])
    update = _Update.of(ranking, removed, added, moved, searches)
    concerned = searches.shifted | searches.carried
    concerned[find(searches.ids, distinct(np.r_[removed.query, added.query]))[0]] = True
    short = concerned & _short(np.minimum(update.count(searches), searches.k), searches)
    spent_s = perf_counter() - began
    if short.any():
        farther = _together([Ranked.none(), *_searched(searches, np.flatnonzero(short))])
        update = update.searched(farther, Candidates.together([removed, added.take(moved)]), searches.ids[short])
    began = perf_counter()
    now, changes = update.applied(searches)
    count, last = now.last(searches.ids)
    searches.share(concerned, spent_s + perf_counter() - began)
    return now, changes, _steered(count, last, searches, concerned, short)


def limits(ranking: Ranking, ids: np.ndarray, k: np.ndarray, farthest: np.ndarray) -> np.ndarray:
    """Return how far an object may be to count as a neighbour, float64 of shape (Q,).

    That is the distance of the last neighbour; with fewer than k neighbours, how far the query may look. `ids` (Q,) are
    ascending; `k` and `farthest` (Q,) belong to them.
    """
    count, last = ranking.last(ids)
    return np.where(count >= k, np.nan_to_num(last), farthest)


@dataclass(frozen=True)
class _Update:
    """What a micro-batch changes in a ranking.

    Parameters
    ----------
    was : Ranking
    dropped : ndarray of int64
        The positions of the candidates of `was` that are removed, or replaced, ascending.
    added : Candidates
        What is inserted.
    moved : ndarray of bool
        Which of these moved.
    """

    was: Ranking
    dropped: np.ndarray
    added: Candidates
    moved: np.ndarray

    @classmethod
    def of(
        cls, was: Ranking, removed: Candidates, added: Candidates, moved: np.ndarray, searches: Searches
    ) -> "_Update":
        """Return the update by what the regions sent; shifted queries get all of their candidates anew."""
        position, running = find(searches.ids, was.query)
        running = np.flatnonzero(running)
        ended = np.ones(len(was.query), dtype=bool)
        ended[running] = searches.shifted[position[running]]
        carried = np.zeros(len(was.query), dtype=bool)
        carried[running] = searches.carried[position[running]] & ~ended[running]
        dropped = distinct(np.r_[was.rows(np.flatnonzero(ended)), _placed(was, removed)])
        if not carried.any():
            return cls(was, dropped, added, moved)
        # Queries that moved with an infinite search region keep their candidates, at other distances.
        rows = was.rows(np.flatnonzero(carried))
        kept = np.setdiff1d(rows, dropped)
        run = np.searchsorted(was.start, kept, "right") - 1
        distance = searches.measure(position[run], was.key[kept])
        again = Candidates(was.query[run], was.key[kept], distance)
        moved = np.r_[moved, np.zeros(len(kept), dtype=bool)]
        return cls(was, distinct(np.r_[dropped, rows]), Candidates.together([added, again]), moved)

    def count(self, searches: Searches) -> np.ndarray:
        """Return how many candidates each query will have, int64 of shape (Q,)."""
        count = np.bincount(find(searches.ids, self.added.query)[0], minlength=len(searches.ids))
        position, known = find(self.was.query, searches.ids)
        run = np.searchsorted(self.was.start + self.was.count, self.dropped, "right")
        left = self.was.count - np.bincount(run, minlength=len(self.was.query))
        count[known] += left[position[known]]
        return count

    def searched(self, farther: Ranked, touched: Candidates, queries: np.ndarray) -> "_Update":
        """Return the update in which some queries (ascending) get the candidates that a wider search found."""
        others = ~np.isin(self.added.query, queries)
        found = Candidates(farther.query, farther.key, farther.distance)
        runs = np.flatnonzero(np.isin(self.was.query, queries))
        return _Update(
            self.was,
            distinct(np.r_[self.dropped, self.was.rows(runs)]),
            Candidates.together([self.added.take(others), found]),
            np.r_[self.moved[others], _joined(found, touched) >= 0],
        )

    def applied(self, searches: Searches) -> tuple[Ranking, NearestChanges]:
        """Return the ranking after the batch, and the changes of answers."""
        was, order = self.was, _order(self.added)
        added, moved = self.added.take(order), self.moved[order]
        keep = np.ones(len(was.key), dtype=bool)
        keep[self.dropped] = False
        before = np.r_[0, np.cumsum(keep)][_lower(was, added)[0]]
        place = before + np.arange(len(before))
        kept = np.ones(int(keep.sum()) + len(place), dtype=bool)
        kept[place] = False
        columns = []
        for name in ("key", "distance"):
            column = np.empty(len(kept), dtype=getattr(was, name).dtype)
            column[kept], column[place] = getattr(was, name)[keep], getattr(added, name)
            columns.append(column)
        count = self.count(searches)
        now = Ranking(searches.ids, count, np.minimum(count, searches.k), *columns)
        return now, self._changes(now, (added, moved, place), (keep, kept), searches)

    def _changes(
        self,
        now: Ranking,
        inserted: tuple[Candidates, np.ndarray, np.ndarray],
        masks: tuple[np.ndarray, np.ndarray],
        searches: Searches,
    ) -> NearestChanges:
        """Return the changes; a member that stays is one if its object moved, or its distance or rank differs."""
        (added, moved, place), (keep, kept) = inserted, masks
        old = self._at(self.dropped)
        match = _joined(added, old)
        known = match >= 0
        was, told = np.zeros(len(place), dtype=np.int64), np.full(len(place), np.nan)
        was[known], told[known] = old.rank[match[known]], old.distance[match[known]]
        rank = np.zeros((2, len(kept)), dtype=np.int64)
        rank[0][kept], rank[0][place], rank[1] = self.was.ranks[keep], was, now.ranks
        differs = rank[0] != rank[1]
        differs[place] |= ((was > 0) | (rank[1][place] > 0)) & (moved | (added.distance != told))
        # Of a query that reports membership alone, only entries and exits are told.
        differs &= ((rank[0] > 0) != (rank[1] > 0)) | np.repeat(~searches.quiet, now.count)
        row = np.flatnonzero(differs)
        has_moved = np.zeros(len(kept), dtype=bool)
        has_moved[place] = moved
        run = np.searchsorted(now.start + now.count, row, "right")
        told_now = Ranked(now.query[run], now.key[row], now.distance[row], rank[1][row].astype(np.int32))
        sign = np.where(rank[1][row] == 0, LEFT, np.where(rank[0][row] > 0, STAYED, ENTERED)).astype(np.int8)
        back = np.zeros(len(old.key), dtype=bool)
        back[match[known]] = True
        gone = old.take(~back & (old.rank > 0))
        members = _together([told_now, replace(gone, rank=np.zeros(len(gone.key), dtype=np.int32))])
        sign = np.r_[sign, np.full(len(gone.key), LEFT, dtype=np.int8)]
        members = replace(members, distance=np.where(sign == LEFT, np.nan, members.distance))
        return NearestChanges(members, sign, np.r_[has_moved[row], np.zeros(len(gone.key), dtype=bool)])

    def _at(self, rows: np.ndarray) -> Ranked:
        """Return the candidates at some positions, as they were."""
        run = np.searchsorted(self.was.start + self.was.count, rows, "right")
        rank = self.was.ranks[rows].astype(np.int32)
        return Ranked(self.was.query[run], self.was.key[rows], self.was.distance[rows], rank)


def _order(candidates: Candidates) -> np.ndarray:
    """Return the order of candidates by query, distance and key."""
    return np.lexsort((candidates.key, candidates.distance, candidates.query))


def _lower(ranking: Ranking, wanted: Candidates) -> tuple[np.ndarray, np.ndarray]:
    """Return the position at which each candidate stands in a ranking, or would be inserted, and whether it is there.

    Candidates are found by their query, distance and key.
    """
    run = np.searchsorted(ranking.query, wanted.query)
    ends = np.r_[ranking.start, len(ranking.key)]
    low, known = ends[run], find(ranking.query, wanted.query)[1]
    stop = high = np.where(known, ends[np.minimum(run + 1, len(ranking.query))], low)
    while (low < high).any():
        middle = (low + high) // 2
        at = np.minimum(middle, len(ranking.key) - 1)
        way, key = ranking.distance[at], ranking.key[at]
        before = (low < high) & ((way < wanted.distance) | ((way == wanted.distance) & (key < wanted.key)))
        low, high = np.where(before, middle + 1, low), np.where(before | (low >= high), high, middle)
    present = low < stop
    present[present] = ranking.key[low[present]] == wanted.key[present]
    return low, present


def _placed(ranking: Ranking, removed: Candidates) -> np.ndarray:
    """Return the positions of removed candidates; those that the ranking lacks are left out."""
    place, present = _lower(ranking, removed)
    # A distance may differ by its rounding if another limit was measured with. The key decides then.
    others = np.flatnonzero(~present)
    if not len(others):
        return place
    run, known = find(ranking.query, distinct(removed.query[others]))
    rows = ranking.rows(run[known])
    query = np.repeat(ranking.query[run[known]], ranking.count[run[known]])
    found = Candidates(query, ranking.key[rows], ranking.distance[rows])
    match = _joined(removed.take(others), found)
    return np.r_[place[present], rows[match[match >= 0]]]


def _joined(some: Candidates, others: Candidates | Ranked) -> np.ndarray:
    """Return for each candidate of `some` its position among `others`, by query and key; -1 if it is not there."""
    match = np.full(len(some.key), -1, dtype=np.int64)
    order = np.lexsort((others.key, others.query))
    query, key = others.query[order], others.key[order]
    low, high = (np.searchsorted(query, some.query, side) for side in ("left", "right"))
    stop = high
    while (low < high).any():
        middle = (low + high) // 2
        before = (low < high) & (key[np.minimum(middle, len(key) - 1)] < some.key)
        low, high = np.where(before, middle + 1, low), np.where(before | (low >= high), high, middle)
    present = low < stop
    present[present] = key[low[present]] == some.key[present]
    match[present] = order[low[present]]
    return match


def _ranks(candidates: Candidates, searches: Searches) -> np.ndarray:
    """Return ranks, int32, of candidates ordered by query and key; 0 beyond k. Of equals the lower key is nearer."""
    query = find(searches.ids, candidates.query)[0]
    count = np.bincount(query, minlength=len(searches.ids))
    rank = np.empty(len(query), dtype=np.int32)
    rank[_by_distance(query, candidates, len(searches.ids))] = expand(np.zeros_like(count), count)[1] + 1
    return np.where(rank <= np.repeat(searches.k, count), rank, np.int32(0))


def _by_distance(query: np.ndarray, candidates: Candidates, queries: int) -> np.ndarray:
    """Return the order of candidates by query (their positions), distance and key."""
    # Two sorts by one column take a fifth of the time of a sort by three columns, which only equal distances need.
    order = np.argsort(candidates.distance)
    order = order[np.argsort(query[order].astype(np.uint16 if queries < 2**16 else np.int64), kind="stable")]
    ordered, distance = query[order], candidates.distance[order]
    tied = (ordered[1:] == ordered[:-1]) & (distance[1:] == distance[:-1])
    if tied.any():
        rows = np.flatnonzero(np.isin(query, ordered[1:][tied]))
        again = np.lexsort((candidates.key[rows], candidates.distance[rows], query[rows]))
        order[np.isin(ordered, ordered[1:][tied])] = rows[again]
    return order


def _short(count: np.ndarray, searches: Searches) -> np.ndarray:
    """Tell which queries have fewer than k members and may look farther, bool of shape (Q,)."""
    farther = np.isnan(searches.reach) | (searches.reach < searches.farthest)
    return searches.placed & (count < searches.k) & farther


def _searched(searches: Searches, short: np.ndarray) -> Iterator[Ranked]:
    """Yield the answers of queries, given by positions, that must look beyond their search regions."""
    few = 1 + PAIRS_AT_ONCE // max(1, searches.objects)
    guessed = np.isnan(searches.reach[short]) | (searches.reach[short] <= 0)
    left = []
    # A circle whose radius is guessed may hold all objects: `PAIRS_AT_ONCE` limits how many are searched at once.
    for some, at_once in ((short[~guessed], QUERIES_AT_ONCE), (short[guessed], few)):
        for part in _parts(some, at_once):
            left.append((yield from _widening(searches, part)))
    for part in _parts(np.concatenate([short[:0], *left]), few):
        yield _within(searches, part, searches.farthest[part])[0]


def _parts(queries: np.ndarray, at_once: int) -> list[np.ndarray]:
    return [queries[start : start + at_once] for start in range(0, len(queries), at_once)]


def _widening(searches: Searches, left: np.ndarray) -> Generator[Ranked, None, np.ndarray]:
    """Yield the answers of queries, given by positions, once their circles are wide enough; return those left over."""
    reach, farthest = searches.reach.copy(), searches.farthest
    unknown = np.isnan(reach) | (reach <= 0)
    if unknown[left].any():
        reach[unknown] = searches.guess()[unknown]
    for _ in range(MOST_GROWTHS):
        if not len(left):
            break
        reach[left] = np.minimum(reach[left], farthest[left])
        found, count = _within(searches, left, reach[left])
        enough = (count >= searches.k[left]) | (reach[left] >= farthest[left])
        yield found.take(enough[find(searches.ids[left], found.query)[0]])
        left, count = left[~enough], count[~enough]
        expected = np.sqrt(searches.k[left] / np.maximum(count, 1))
        reach[left] *= (1 + searches.alpha[left]) * np.maximum(expected, LEAST_GROWTH)
    return left


def _within(searches: Searches, queries: np.ndarray, reach: np.ndarray) -> tuple[Ranked, np.ndarray]:
    """Return the answers of queries, given by positions, within radii, and how many objects each circle has, (K,)."""
    found = searches.search(queries, reach)
    found = found.take(np.lexsort((found.key, found.query)))
    count = np.bincount(find(searches.ids[queries], found.query)[0], minlength=len(queries))
    rank = _ranks(found, searches)
    return Ranked(found.query, found.key, found.distance, rank).take(rank > 0), count


def _steered(
    count: np.ndarray, last: np.ndarray, searches: Searches, concerned: np.ndarray, short: np.ndarray
) -> np.ndarray:
    """Return the radii of search regions from the next batch on."""
    full, alpha, reach = count >= searches.k, searches.alpha, searches.reach
    wanted = np.where(full, (1 + alpha) * last, np.inf)
    with np.errstate(invalid="ignore"):
        apt = (reach >= (1 + alpha / 4) * last) & (reach <= LARGER * wanted)
    adapted = concerned & (short | (full & ~apt))
    reach = np.where(adapted, np.minimum(wanted, searches.farthest), reach)
    return np.where(searches.placed, reach, np.nan)


def _together(parts: Sequence[Ranked]) -> Ranked:
    return Ranked(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Ranked)))

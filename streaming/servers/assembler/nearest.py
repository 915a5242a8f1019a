"""The assembler of nearest neighbours: it ranks the objects in search regions, and adapts the radii of these.

References
----------
PLACE* (2007), section 5 and table 3: the search region is larger than the answer by a factor (1 + alpha), grows when it
holds fewer than k objects, and shrinks when it holds many more.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter

import numpy as np

from streaming.kinds.knn.plan import NearestPlan
from streaming.operators.runs import expand, find
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.participant.partial import Candidates, Partial

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
    """Candidates of kNN queries with their ranks, arrays of shape (P,), ordered by query and key.

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

    @property
    def members(self) -> "Ranked":
        """The candidates in the answers."""
        return self.take(self.rank > 0)


@dataclass(frozen=True)
class Changes:
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
        Takes queries, each repeated for every candidate of it that was looked at, and the seconds that this took.
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

    @property
    def k(self) -> np.ndarray:
        """How many neighbours each query asks for."""
        return np.array([plan.k for plan in self.plans], dtype=np.int64)

    @property
    def alpha(self) -> np.ndarray:
        """By which fraction of its answer's radius each search region is to be larger."""
        return np.array([plan.alpha for plan in self.plans], dtype=np.float64)


def step(ranked: Ranked, partials: Sequence[Partial], searches: Searches) -> tuple[Ranked, Changes, np.ndarray]:
    """Rank the objects in search regions; search farther for queries that have fewer than k.

    Parameters
    ----------
    ranked : Ranked
        All objects in search regions, and the answers among them, as they were reported.
    partials : sequence of Partial
    searches : Searches

    Returns
    -------
    ranked : Ranked
    changes : Changes
    reach : ndarray of float64, shape (Q,)
        The radii of search regions from the next batch on.
    """
    began = perf_counter()
    removed = Candidates.together([partial.removed for partial in partials])
    added = Candidates.together([partial.added for partial in partials])
    moved = np.concatenate([np.zeros(0, dtype=bool), *(partial.moved for partial in partials)])
    concerned = np.isin(searches.ids, np.r_[removed.query, added.query])
    concerned |= searches.shifted | searches.carried
    still = _rows(ranked, searches.ids, ~searches.shifted)
    found = _Table.of(ranked, still, removed, added, moved).measured(searches).ranked(concerned, searches)
    count, last = found.reached(searches)
    searches.share(found.now.query[found.seen], perf_counter() - began)
    short = concerned & _short(count, searches)
    if short.any():
        farther = _together([Ranked.none(), *_searched(searches, np.flatnonzero(short))])
        farther = farther.take(np.lexsort((farther.key, farther.query)))
        touched = Candidates.together([removed, added.take(moved)])
        touched = touched.take(np.lexsort((touched.key, touched.query)))
        found = found.searched(ranked, short, farther, _located(touched, farther)[1], searches)
        count, last = found.reached(searches)
    reach = _steered(count, last, searches, concerned, short)
    return found.now, found.changes(), reach


def limits(ranked: Ranked, ids: np.ndarray, k: np.ndarray, farthest: np.ndarray) -> np.ndarray:
    """Return how far an object may be to count as a neighbour, float64 of shape (Q,).

    That is the distance of the last neighbour; with fewer than k neighbours, how far the query may look. `ids` (Q,) are
    ascending; `k` and `farthest` (Q,) belong to them.
    """
    position, known = find(ids, ranked.query)
    members = np.flatnonzero(known & (ranked.rank > 0))
    last = np.zeros(len(ids))
    np.maximum.at(last, position[members], ranked.distance[members])
    return np.where(np.bincount(position[members], minlength=len(ids)) >= k, last, farthest)


def _rows(ranked, ids, chosen):
    """Tell which candidates belong to chosen queries; `ids` (Q,) are all queries, `chosen` (Q,) is a mask of them."""
    start, stop = (np.searchsorted(ranked.query, ids[chosen], side) for side in ("left", "right"))
    mask = np.zeros(len(ranked.query), dtype=bool)
    mask[expand(start, stop - start)[1]] = True
    return mask


@dataclass(frozen=True)
class _Table:
    """The candidates as they are, and as they were reported.

    `now` has the old ranks until `ranked` gives new ones; `was` has the old ranks, `told` the old distances. `news`
    tells which candidates moved, `seen` which belong to queries whose answer may have changed. `gone` has the former
    members that are no longer candidates.
    """

    now: Ranked
    was: np.ndarray
    told: np.ndarray
    news: np.ndarray
    seen: np.ndarray
    gone: Ranked

    @classmethod
    def of(cls, ranked, still, removed, added, moved):
        """Return the candidates in `still` (a mask: of queries that did not shift) without `removed`, with `added`."""
        keep = still.copy()
        position, present = _located(ranked, removed)
        keep[position[present]] = False
        order = np.lexsort((added.key, added.query))
        return cls._inserted(ranked, keep, added.take(order), moved[order])

    @classmethod
    def _inserted(cls, ranked, keep, added, moved):
        place, known = _located(ranked, added)
        rank, told = np.zeros(len(added.key), dtype=np.int32), np.full(len(added.key), np.nan)
        rank[known], told[known] = ranked.rank[place[known]], ranked.distance[place[known]]
        again = np.zeros(len(keep), dtype=bool)
        again[place[known]] = True
        kept, at = ranked.take(keep), np.r_[0, np.cumsum(keep)][place]
        columns = (added.query, added.key, added.distance, rank)
        names = [column.name for column in fields(Ranked)]
        now = Ranked(*(np.insert(getattr(kept, name), at, new) for name, new in zip(names, columns, strict=True)))
        none = np.zeros(len(kept.key), dtype=bool)
        gone = ranked.take(~keep & ~again & (ranked.rank > 0))
        news = np.insert(none, at, moved)
        return cls(now, now.rank, np.insert(kept.distance, at, told), news, np.zeros_like(news), gone)

    def measured(self, searches):
        """Return the table with new distances for queries that moved but keep their candidates."""
        mine = np.flatnonzero(_rows(self.now, searches.ids, searches.carried))
        if not len(mine):
            return self
        distance = self.now.distance.copy()
        query = find(searches.ids, self.now.query[mine])[0]
        distance[mine] = searches.measure(query, self.now.key[mine])
        return replace(self, now=replace(self.now, distance=distance))

    def ranked(self, concerned, searches):
        """Return the table with new ranks for the queries `concerned`, a mask (Q,)."""
        seen = _rows(self.now, searches.ids, concerned)
        rank = self.was.copy()
        rank[seen] = _ranks(self.now.take(seen), searches)
        return replace(self, now=replace(self.now, rank=rank), seen=seen)

    def searched(self, ranked, short, farther, moved, searches):
        """Return the table with the answers that a wider search found for the queries `short`, a mask (Q,)."""
        mine = _rows(self.now, searches.ids, short)
        before = _rows(ranked, searches.ids, short)
        again = _Table._inserted(ranked.take(before), np.zeros(before.sum(), dtype=bool), farther, moved)
        again = replace(again, now=replace(again.now, rank=farther.rank), seen=np.ones(len(farther.key), dtype=bool))
        order = np.argsort(np.r_[self.now.query[~mine], farther.query], kind="stable")
        columns = {
            name: np.r_[getattr(self, name)[~mine], getattr(again, name)][order]
            for name in ("was", "told", "news", "seen")
        }
        now = _together([self.now.take(~mine), again.now]).take(order)
        gone = _together([self.gone.take(~_rows(self.gone, searches.ids, short)), again.gone])
        return _Table(now, gone=gone, **columns)

    def reached(self, searches):
        """Return how many members each answer has, and the largest distance among them (NaN without), (Q,) each."""
        members = self.now.members
        position = find(searches.ids, members.query)[0]
        count = np.bincount(position, minlength=len(searches.ids))
        last = np.full(len(searches.ids), np.nan)
        np.fmax.at(last, position, members.distance)
        return count, last

    def changes(self):
        """Return the changes; a member that stays is one if its object moved, or its distance or rank differs."""
        was, now = self.was[self.seen], self.now.take(self.seen)
        same = (was == now.rank) & (now.distance == self.told[self.seen]) & ~self.news[self.seen]
        differs = ((was > 0) | (now.rank > 0)) & ~same
        was, now = was[differs], now.take(differs)
        sign = np.where(now.rank == 0, LEFT, np.where(was > 0, STAYED, ENTERED)).astype(np.int8)
        members = _together([now, replace(self.gone, rank=np.zeros_like(self.gone.rank))])
        sign = np.r_[sign, np.full(len(self.gone.key), LEFT, dtype=np.int8)]
        members = replace(members, distance=np.where(sign == LEFT, np.nan, members.distance))
        moved = np.r_[self.news[self.seen][differs], np.zeros(len(self.gone.key), dtype=bool)]
        return Changes(members, sign, moved)


def _located(members, wanted):
    """Return the position of each wanted member in `members`, ordered by query and key, and whether it is there."""
    low = np.searchsorted(members.query, wanted.query, "left")
    stop = high = np.searchsorted(members.query, wanted.query, "right")
    while (low < high).any():
        middle = (low + high) // 2
        before = (low < high) & (members.key[np.minimum(middle, len(members.key) - 1)] < wanted.key)
        low, high = np.where(before, middle + 1, low), np.where(before | (low >= high), high, middle)
    present = low < stop
    present[present] = members.key[low[present]] == wanted.key[present]
    return low, present


def _ranks(candidates, searches):
    """Return ranks, int32, of candidates ordered by query and key; 0 beyond k. Of equals the lower key is nearer."""
    query = find(searches.ids, candidates.query)[0]
    count = np.bincount(query, minlength=len(searches.ids))
    rank = np.empty(len(query), dtype=np.int32)
    rank[_by_distance(query, candidates, len(searches.ids))] = expand(np.zeros_like(count), count)[1] + 1
    return np.where(rank <= np.repeat(searches.k, count), rank, np.int32(0))


def _by_distance(query, candidates, queries):
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


def _short(count, searches):
    """Tell which queries have fewer than k members and may look farther, bool of shape (Q,)."""
    farther = np.isnan(searches.reach) | (searches.reach < searches.farthest)
    return searches.placed & (count < searches.k) & farther


def _searched(searches, short) -> Iterator[Ranked]:
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


def _parts(queries, at_once):
    return [queries[start : start + at_once] for start in range(0, len(queries), at_once)]


def _widening(searches, left) -> Generator[Ranked, None, np.ndarray]:
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
        yield found.take(_rows(found, searches.ids[left], enough))
        left, count = left[~enough], count[~enough]
        expected = np.sqrt(searches.k[left] / np.maximum(count, 1))
        reach[left] *= (1 + searches.alpha[left]) * np.maximum(expected, LEAST_GROWTH)
    return left


def _within(searches, queries, reach):
    """Return the answers of queries, given by positions, within radii, and how many objects each circle has, (K,)."""
    found = searches.search(queries, reach)
    found = found.take(np.lexsort((found.key, found.query)))
    count = np.bincount(find(searches.ids[queries], found.query)[0], minlength=len(queries))
    return Ranked(found.query, found.key, found.distance, _ranks(found, searches)).members, count


def _steered(count, last, searches, concerned, short):
    """Return the radii of search regions from the next batch on."""
    full, alpha, reach = count >= searches.k, searches.alpha, searches.reach
    wanted = np.where(full, (1 + alpha) * last, np.inf)
    with np.errstate(invalid="ignore"):
        apt = (reach >= (1 + alpha / 4) * last) & (reach <= LARGER * wanted)
    adapted = concerned & (short | (full & ~apt))
    reach = np.where(adapted, np.minimum(wanted, searches.farthest), reach)
    return np.where(searches.placed, reach, np.nan)


def _together(parts):
    return Ranked(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Ranked)))

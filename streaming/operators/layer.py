"""A layer that joins compare elements with: its features lie in pages, which are read when elements come near them.

The features of a version never change, and neither do those of a part: an edit adds a part, whose features replace
those of the same keys in earlier ones.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streaming.kinds.join.plan import JoinPlan
from streaming.layers.pages import Pages
from streaming.operators.comparison import Comparison
from streaming.operators.features import Features, IndexedBoxes, differing
from streaming.operators.gathered import GatheredFeatures
from streaming.operators.runs import distinct, find
from streaming.spaces import Space

# So many pages are looked at together. As many stay in memory that no region keeps: those that were needed last.
FETCHED = 16
# Versions without a common part are compared by ranges of hashes; each range has about so many features.
COMPARED_AT_ONCE = 1 << 18
# If more features differ between two versions, they are not looked at one by one.
MOST_DIFFERING = 100_000

Place = tuple[str, int]  # the name of a part, and the number of a page in it


class LayerVersion:
    """One version of a layer. Its features never change, so what is read of them is kept and used again.

    Parameters
    ----------
    parts : sequence of Pages
        The features of a later part replace those of the same key in earlier ones.
    removed : ndarray of int64
        The `key_hash` of the features that were removed, ascending.
    space : Space
    before : LayerVersion, optional
        An earlier version of the layer. The pages that it has in memory are used again: of a part that both versions
        have, no feature is in force now that was not in force then.

    Attributes
    ----------
    boxes : IndexedBoxes
        The box around each page.
    read_bytes : int
        The size of all pages that were read; a page that was read again counts again.
    """

    def __init__(
        self, parts: Sequence[Pages], removed: np.ndarray, space: Space, before: "LayerVersion | None" = None
    ) -> None:
        self.parts, self.removed, self.space = tuple(parts), removed, space
        self.boxes = IndexedBoxes(np.concatenate([np.empty((0, 2 * space.n)), *(p.boxes for p in self.parts)]), space)
        self._first = np.cumsum([0, *(len(part.boxes) for part in self.parts)])
        self._kept: dict[int, tuple[int, np.ndarray]] = {}
        self._keeps = np.zeros(len(self.boxes), dtype=bool)
        self.read_bytes = 0
        # The page that was used last comes last.
        self._pages: dict[int, Features] = {}
        self._take_over({} if before is None else before._places())

    @classmethod
    def of(cls, features: Features) -> "LayerVersion":
        """Return features in memory as a layer of one page."""
        parts = [Pages.of("", features.table, features.space)] if len(features) else []
        layer = cls(parts, np.empty(0, dtype=np.int64), features.space)
        layer._pages = dict(enumerate([features][: len(parts)]))
        return layer

    @classmethod
    def none(cls, space: Space) -> "LayerVersion":
        """Return a layer without features."""
        return cls((), np.empty(0, dtype=np.int64), space)

    def __bool__(self) -> bool:
        return len(self.boxes) > 0

    def page(self, number: int) -> Features:
        """Return the features of a page that are in force; reads them if they are not in memory."""
        features = self._pages.pop(number, None)
        if features is None:
            part = int(np.searchsorted(self._first, number, "right")) - 1
            table = self.parts[part].read(number - int(self._first[part]))
            self.read_bytes += table.nbytes
            features = self._in_force(part, table)
        self._pages[number] = features
        self._forget()
        return features

    def pages(self) -> Iterator[Features]:
        """Yield the features of all pages."""
        return (self.page(number) for number in range(len(self.boxes)))

    def keep(self, region: int, batch: int, pages: np.ndarray) -> None:
        """Have pages stay in memory, once they are read, for a region that this process runs.

        Parameters
        ----------
        region, batch : int
            A region that was not run here in this batch or the one before it keeps nothing any more.
        pages : ndarray of bool, shape (P,)
        """
        self._kept[region] = batch, pages
        self._kept = {number: kept for number, kept in self._kept.items() if kept[0] >= batch - 1}
        self._keeps = np.any([some for _, some in self._kept.values()], axis=0)
        self._forget()

    @property
    def in_memory(self) -> int:
        """How many pages are in memory."""
        return len(self._pages)

    def comparisons(
        self, plan: JoinPlan, bounds: np.ndarray
    ) -> Iterator[tuple[Comparison[Features | GatheredFeatures], np.ndarray]]:
        """Yield comparisons with pages, some at a time, and the elements that come near them.

        Parameters
        ----------
        plan : JoinPlan
            Only its transformations, predicate and distance are used.
        bounds : ndarray of float64, shape (K, 2n)
            The boxes of the elements.

        Yields
        ------
        comparison : Comparison
        rows : ndarray of int64
            Positions in `bounds`, ascending.
        """
        rows = np.arange(len(bounds))
        if len(self.boxes) <= 1 or plan.partners.predicate == "disjoint":
            yield from ((Comparison(plan, self.space, features), rows) for features in self.pages() if len(features))
            return
        row, page = Comparison(plan, self.space, self.boxes).near(bounds)
        numbers = np.unique(page)
        for some in np.split(numbers, range(FETCHED, len(numbers), FETCHED)) if len(numbers) else ():
            pages = GatheredFeatures(
                self.boxes.bounds[some], [self.page(number) for number in some.tolist()], self.space
            )
            yield Comparison(plan, self.space, pages), distinct(row[find(some, page)[1]])

    def located(self, key_hash: np.ndarray) -> Iterator[tuple[np.ndarray, Features, np.ndarray]]:
        """Find features; yield for each page that has some of them which they are, the page, and their rows in it.

        Parameters
        ----------
        key_hash : ndarray of int64, shape (K,)

        Yields
        ------
        position : ndarray of int64
            Positions in `key_hash`. Those of features that do not exist occur nowhere.
        features : Features
        row : ndarray of int64
            Rows of `features`.
        """
        left = np.flatnonzero(~find(self.removed, key_hash)[1])
        for first, part in zip(self._first[-2::-1].tolist(), reversed(self.parts), strict=True):
            place, there = find(part.key_hash, key_hash[left])
            mine, page = left[there], first + part.page[place[there]]
            left = left[~there]
            for number in np.unique(page).tolist():
                position, features = mine[page == number], self.page(number)
                yield position, features, features.find(key_hash[position])[0]

    def differing(self, after: "LayerVersion") -> Features | None:
        """Return the features that differ between this version and a later one, as `features.differing` does.

        None if they are too many, or if one of the versions has no features: it may be one that is no longer stored.
        """
        if not (self and after):
            return None
        keys = self._edited(after) if _common(self, after) else self._changed(after)
        if len(keys) > MOST_DIFFERING:
            return None
        return differing(*(Features(version._table(keys), self.space) for version in (self, after)))

    def _places(self) -> dict[Place, Features]:
        """Return the pages in memory by part and number in it."""
        parts = np.searchsorted(self._first, list(self._pages), "right") - 1
        return {
            (self.parts[part].name, number - int(self._first[part])): features
            for part, (number, features) in zip(parts.tolist(), self._pages.items(), strict=True)
        }

    def _take_over(self, places: dict[Place, Features]) -> None:
        """Use the pages of another version again, without the features that are no longer in force."""
        known = {part.name: number for number, part in enumerate(self.parts)}
        for (name, number), features in places.items():
            if name in known:
                part = known[name]
                self._pages[int(self._first[part]) + number] = self._in_force(part, features)

    def _in_force(self, part: int, page: pa.Table | Features) -> Features:
        """Return a page, a table or `Features`, without the features that a later part replaces or that are removed."""
        table = page.table if isinstance(page, Features) else page
        key_hash = table["key_hash"].to_numpy()
        gone = find(self.removed, key_hash)[1]
        for later in self.parts[part + 1 :]:
            gone |= find(later.key_hash, key_hash)[1]
        if gone.any():
            return Features(table.filter(pa.array(~gone)), self.space)
        return page if isinstance(page, Features) else Features(table, self.space)

    def _forget(self) -> None:
        """Drop pages that no region keeps, except those that were needed last."""
        fetched = [number for number in self._pages if not self._keeps[number]]
        for number in fetched[:-FETCHED]:
            del self._pages[number]

    def _table(self, keys: np.ndarray) -> pa.Table:
        """Return those of some features that exist."""
        tables = [features.table.take(pa.array(row)) for _, features, row in self.located(keys)]
        return pa.concat_tables(tables or [next(self.pages()).table.slice(0, 0)])

    def _edited(self, after: "LayerVersion") -> np.ndarray:
        """Return the keys of the features that the parts without a counterpart have, and of those removed in one."""
        common = _common(self, after)
        parts = [part.key_hash for part in (*self.parts, *after.parts) if part.name not in common]
        return distinct(np.concatenate([np.setxor1d(self.removed, after.removed), *parts]))

    def _changed(self, after: "LayerVersion") -> np.ndarray:
        """Return the keys of the features of which only one version has the digest; looks at some keys at a time."""
        found = [np.empty(0, dtype=np.int64)]
        for low, high in _ranges(sum(len(part.key_hash) for part in self.parts)):
            was, now = (version._digests(low, high) for version in (self, after))
            keys = np.concatenate([was[0], now[0]])
            order = np.lexsort((digest := np.concatenate([was[1], now[1]]), keys))
            keys, digest = keys[order], digest[order]
            follows = (keys[1:] == keys[:-1]) & (digest[1:] == digest[:-1])
            alike = np.zeros(len(keys), dtype=bool)
            alike[1:] |= follows
            alike[:-1] |= follows
            found.append(distinct(keys[~alike]))
            if sum(map(len, found)) > MOST_DIFFERING:
                break
        return np.concatenate(found)

    def _digests(self, low: int | None, high: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the hashes of the keys in a range, and the digests of these features, in any order."""
        keys, digests = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        for part in reversed(self.parts):
            some = slice(*(None if end is None else np.searchsorted(part.key_hash, end) for end in (low, high)))
            new = ~np.isin(part.key_hash[some], keys)
            keys, digests = np.r_[keys, part.key_hash[some][new]], np.r_[digests, part.digest[some][new]]
        kept = ~find(self.removed, keys)[1]
        return keys[kept], digests[kept]


def _common(before: LayerVersion, after: LayerVersion) -> set[str]:
    return {part.name for part in before.parts} & {part.name for part in after.parts}


def _ranges(count: int) -> Iterator[tuple[int | None, int | None]]:
    """Return ranges of hashes that together are all, each with about `COMPARED_AT_ONCE` of `count` hashes.

    A range goes from its first limit to before its second one; None stands for no limit.
    """
    limits = np.iinfo(np.int64)
    inner = np.linspace(limits.min, limits.max, count // COMPARED_AT_ONCE + 2)[1:-1].astype(np.int64).tolist()
    return zip([None, *inner], [*inner, None], strict=True)

"""The features of some pages of a layer as one table, so that what lies near elements is compared at once."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from streaming.kinds.parts import Filter
from streaming.operators.elements import repeated
from streaming.operators.features import Features, IndexedBoxes
from streaming.spaces import Space
from streaming.udf import Judged


class GatheredFeatures:
    """Features of several pages. Their positions count through all pages, in order.

    The methods are those of `Features`.

    Parameters
    ----------
    boxes : ndarray of float64, shape (P, 2n)
        The box around each page.
    pages : sequence of Features, length P
    space : Space
    """

    def __init__(self, boxes: np.ndarray, pages: Sequence[Features], space: Space) -> None:
        self._boxes, self._pages = IndexedBoxes(boxes, space), pages
        self._first = np.cumsum([0, *map(len, pages)])

    def __len__(self) -> int:
        return int(self._first[-1])

    def meeting(self, boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of boxes (K, 2n) and features that meet, perhaps after a turn, int64 each."""
        row, page = self._boxes.meeting(boxes)
        found = [np.empty((2, 0), dtype=np.int64)]
        for number, features in enumerate(self._pages):
            mine = row[page == number]
            if len(mine) and len(features):
                at, feature = features.meeting(boxes[mine])
                found.append(np.stack([mine[at], self._first[number] + feature]))
        at, feature = np.hstack(found)
        return at, feature

    def counts(self, boxes: np.ndarray) -> np.ndarray:
        """Return in how many pairs `meeting` finds each of some boxes (K, 2n), at most: int64 of shape (K,)."""
        most = np.zeros(len(boxes), dtype=np.int64)
        for features in self._pages:
            most += features.counts(boxes) if len(features) else 0
        return most

    def hashes(self, rows: np.ndarray) -> np.ndarray:
        """Return the `key_hash` of the features at rows (K,)."""
        return self._taken(rows, np.empty(len(rows), dtype=np.int64), Features.hashes)

    def shapes(self, rows: np.ndarray) -> np.ndarray:
        """Return the prepared geometries of the features at rows (K,)."""
        return self._taken(rows, np.empty(len(rows), dtype=object), Features.shapes)

    def points(self, rows: np.ndarray) -> np.ndarray | None:
        """Return None: it is not known whether features are points."""
        return None

    def spans(self, rows: np.ndarray) -> np.ndarray:
        """Return the least and the greatest first coordinate of the geometries at rows (K,), shape (K, 2)."""
        return self._taken(rows, np.empty((len(rows), 2)), Features.spans)

    def batch(self, rows: np.ndarray) -> pa.RecordBatch:
        """Return the features at rows (K,), which may repeat, for user-defined filters; stores each geometry once."""
        unique, place = np.unique(rows, return_inverse=True)
        parts = [(features, mine) for _, features, mine in self._split(unique)] or [(self._pages[0], unique)]
        columns = ["key", "geometry", "properties"]
        table = pa.concat_tables([features.table.select(columns).take(pa.array(mine)) for features, mine in parts])
        bounds = np.concatenate([features.bounds[mine] for features, mine in parts])
        return repeated(table, bounds[place], place)

    def judged(self, where: str, filters: tuple[Filter, ...]) -> Judged:
        """Tell which features pass, and give the error of the first filter that failed, if any."""
        parts = [features.judged(where, filters) for features in self._pages]
        error = next((part.error for part in parts if part.error is not None), None)
        return Judged(np.concatenate([part.passes for part in parts]), error)

    def _taken(
        self, rows: np.ndarray, taken: np.ndarray, read: Callable[[Features, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Fill an array with what a method of `Features` returns for rows."""
        for position, features, mine in self._split(rows):
            taken[position] = read(features, mine)
        return taken

    def _split(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, Features, np.ndarray]]:
        """Yield for each page that some of the rows belong to: their positions, the page, and the rows in it."""
        page = np.searchsorted(self._first, rows, "right") - 1
        for number in np.unique(page).tolist():
            position = np.flatnonzero(page == number)
            yield position, self._pages[number], rows[position] - self._first[number]

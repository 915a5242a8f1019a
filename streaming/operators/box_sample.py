"""A sample of boxes, each of which stands for several: what estimates know of many objects, and of many features.

References
----------
R. J. Lipton, J. F. Naughton, D. A. Schneider, "Practical Selectivity Estimation through Adaptive Sampling", SIGMOD
1990.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, from_ipc, to_ipc

# Fewer boxes of a stream say too little of it.
LEAST_EACH = 16


@dataclass(frozen=True)
class BoxSample:
    """Some boxes of many.

    Parameters
    ----------
    bounds : ndarray of float64, shape (K, 2n)
    weight : ndarray of float64, shape (K,)
        How many boxes each stands for.

    Examples
    --------
    >>> sample = BoxSample.drawn(np.zeros((1_000, 4)), 10, share=0.5)
    >>> len(sample), round(sample.count)
    (10, 2000)
    """

    bounds: np.ndarray
    weight: np.ndarray

    @classmethod
    def drawn(cls, bounds: np.ndarray, most: int, share: float = 1.0, count: float | None = None) -> "BoxSample":
        """Draw at most `most` boxes evenly, of boxes (N, 2n) in an order that says nothing of their places.

        Parameters
        ----------
        bounds : ndarray of float64, shape (N, 2n)
        most : int
        share : float
            Which part of all boxes these are.
        count : float, optional
            How many boxes there are in all, where that is known.
        """
        chosen = np.linspace(0, len(bounds), min(most, len(bounds)), endpoint=False).astype(np.int64)
        whole = len(bounds) / share if count is None else count
        return cls(bounds[chosen], np.full(len(chosen), whole / max(1, len(chosen))))

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def count(self) -> float:
        """How many boxes there are, about."""
        return float(self.weight.sum())

    def thinned(self, most: int) -> "BoxSample":
        """Return about so many of the boxes at most, which stand for as many as before."""
        step = -(-len(self) // max(1, most))
        if step <= 1:
            return self
        weight = self.weight[::step]
        return BoxSample(self.bounds[::step], weight * (self.count / weight.sum()))

    @classmethod
    def together(cls, parts: Iterable["BoxSample"]) -> "BoxSample":
        """Return the sample of all that some samples, one at least, stand for."""
        parts = list(parts)
        return cls(np.concatenate([part.bounds for part in parts]), np.concatenate([part.weight for part in parts]))


def together(parts: Iterable[Mapping[int, BoxSample]]) -> dict[int, BoxSample]:
    """Return the samples of all parts by stream, given those of each part."""
    of: dict[int, list[BoxSample]] = {}
    for part in parts:
        for stream, sample in part.items():
            of.setdefault(stream, []).append(sample)
    return {stream: BoxSample.together(samples) for stream, samples in of.items()}


def packed(samples: Mapping[int, BoxSample], most: int) -> bytes:
    """Return samples by stream as bytes: at most about `most` boxes, at least `LEAST_EACH` of each stream.

    If there are too many streams for that, those with most objects are told.
    """
    largest = sorted(samples, key=lambda stream: -samples[stream].count)[: max(1, most // LEAST_EACH)]
    thin = {stream: samples[stream].thinned(most // max(1, len(largest))) for stream in largest}
    if not thin:
        return b""
    whole = BoxSample.together(thin.values())
    streams = np.repeat(np.array(list(thin), dtype=np.int64), [len(sample) for sample in thin.values()])
    return to_ipc(pa.table({"stream": streams, "weight": whole.weight, "bounds": bounds_array(whole.bounds)}))


def unpacked(payload: bytes) -> dict[int, BoxSample]:
    """Return samples by stream; the inverse of `packed`."""
    if not payload:
        return {}
    table = from_ipc(payload)
    stream, weight, bounds = table["stream"].to_numpy(), table["weight"].to_numpy(), bounds_of(table["bounds"])
    return {
        number: BoxSample(bounds[stream == number], weight[stream == number]) for number in np.unique(stream).tolist()
    }

"""Cut elements that follow each other in time into micro-batches, and leave out those that can change no answer."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.operators.boxes import box_array, intersects
from streaming.operators.runs import find, first_of_runs
from streaming.spaces import Space

SECOND_US = 1_000_000


def micro_batches(elements: pa.Table) -> Iterator[tuple[int, pa.Table, bool]]:
    """Cut elements so that no answer between two of them is missed.

    A micro-batch has the elements of one second, but of an object only those that were heard at the same moment, of
    which the newest counts, as in a live batch. So the second element of an object in a second is in a second batch.

    Parameters
    ----------
    elements : pyarrow.Table
        With `tracked_schema`, in the order in which they were heard.

    Yields
    ------
    second : int
        In seconds since 1970 UTC.
    elements : pyarrow.Table
        In one piece.
    last : bool
        Whether it is the last one of the second.
    """
    second, turn = turns(elements["heard_us"].to_numpy(), elements["key_hash"].to_numpy())
    order = np.lexsort((turn, second))
    if (order[1:] < order[:-1]).any():
        elements, second, turn = elements.take(pa.array(order)), second[order], turn[order]
    elements = elements.combine_chunks()
    start = np.flatnonzero(first_of_runs(second) | first_of_runs(turn))
    stop, named = np.r_[start[1:], len(second)][: len(start)], second[start]
    last = np.r_[named[1:] != named[:-1], np.ones(min(1, len(named)), dtype=bool)]
    for place, (begin, end) in enumerate(zip(start.tolist(), stop.tolist(), strict=True)):
        yield int(named[place]), elements.slice(begin, end - begin), bool(last[place])


def turns(heard_us: np.ndarray, key_hash: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the second of each element, and how many moments of that second had an element of its object before.

    Parameters
    ----------
    heard_us, key_hash : ndarray of int64, shape (N,)
        In the order in which they were heard.

    Returns
    -------
    second, turn : ndarray of int64, shape (N,)

    Examples
    --------
    >>> turns(np.array([0, 5, 5, 9, 1_000_000]), np.array([7, 7, 7, 7, 7]))[1].tolist()
    [0, 1, 1, 2, 0]
    """
    second = heard_us // SECOND_US
    order = np.lexsort((heard_us, second, key_hash))
    key, at, moment = key_hash[order], second[order], heard_us[order]
    begins = first_of_runs(key) | first_of_runs(at)
    moments = np.cumsum(begins | first_of_runs(moment))
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = moments - moments[begins][np.cumsum(begins) - 1] if len(order) else 0
    return second, turn


class Nearby:
    """Leaves out elements that can change no answer: an object is somewhere outside, and was outside before.

    Parameters
    ----------
    plans : sequence of Plan
    space : Space
    """

    def __init__(self, plans: Sequence[Plan], space: Space) -> None:
        self.space = space
        self.boxes = boxes_about(plans, space)
        self._inside = np.empty(0, dtype=np.int64)

    def of(self, elements: pa.Table) -> pa.Table:
        """Return the elements that may change an answer, given those that follow the ones of the call before."""
        if self.boxes is None or not elements.num_rows:
            return elements
        inside, key = self._meets(self.boxes, bounds_of(elements["bounds"])), elements["key_hash"].to_numpy()
        order = np.argsort(key, kind="stable")
        ordered, first = inside[order], first_of_runs(key[order])
        before = np.r_[False, ordered[:-1]]
        before[first] = find(self._inside, key[order][first])[1]
        last = np.r_[first[1:], True]
        gone = key[order][last & ~ordered]
        self._inside = np.union1d(np.setdiff1d(self._inside, gone), key[order][last & ordered])
        chosen = np.zeros(len(key), dtype=bool)
        chosen[order] = ordered | before
        return elements if chosen.all() else elements.filter(pa.array(chosen))

    def _meets(self, boxes: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        inside, rows = np.zeros(len(bounds), dtype=bool), np.arange(len(bounds))
        for box in boxes:
            left = rows[~inside]
            inside[left] = intersects(bounds, left, box[None], np.zeros_like(left), self.space)
        return inside


def boxes_about(plans: Sequence[Plan], space: Space) -> np.ndarray | None:
    """Return boxes outside of which no element changes an answer, (K, 2n); None if any element may.

    An answer that depends on other objects, as in joins with streams and nearest neighbours, has no such box. And
    whether an object, or its stream, is silent depends on reports from anywhere.
    """
    if about_silence(plans):
        return None
    looking = [plan for plan in plans if not kind_of(plan).queries(plan)]
    if any(kind_of(plan).evaluation(plan) is not Evaluation.REGIONAL for plan in looking):
        return None
    boxes = box_array([kind_of(plan).box(plan) for plan in looking], space)
    return None if np.isinf(boxes).all(1).any() else np.unique(boxes, axis=0)


def about_silence(plans: Sequence[Plan]) -> bool:
    """Tell whether one of the plans asks whether objects are silent."""
    return any(getattr(plan, "silent", False) for plan in plans)

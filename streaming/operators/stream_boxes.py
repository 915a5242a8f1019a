"""Boxes of the plane, each for the elements of one stream, which are matched with elements from either side."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streaming.operators.boxes import in_plane, with_turns
from streaming.operators.elements import Elements
from streaming.operators.query_index import QueryIndex
from streaming.operators.runs import distinct
from streaming.spaces import Space

# Up to so many pairs are compared without an index.
FEW_PAIRS = 50_000
# These boxes move, so their index is made for a single batch, and may cost no more than its look-ups.
MAX_ENTRIES = 150_000


@dataclass(frozen=True)
class Near:
    """Elements that an index has found, and the boxes that they meet.

    Parameters
    ----------
    box, row : ndarray of int64, shape (P,)
        The pairs: positions of boxes, or what the boxes stand for, and positions in `elements`. A pair may repeat.
    elements : Elements, N of them
        Each element once.
    keys : ndarray of int64, shape (N,)
        The `key_hash` of each element.
    """

    box: np.ndarray
    row: np.ndarray
    elements: Elements
    keys: np.ndarray


# An index over elements: given boxes of the plane (M, 4), it returns the pairs of a box and an element that meet. Where
# a dimension wraps, the boxes come with the copies that `boxes.with_turns` makes.
Look = Callable[[np.ndarray], Near]


class StreamBoxes:
    """An immutable set of numbered boxes; their index is made once, when it is first needed.

    Parameters
    ----------
    numbers : ndarray of int64, shape (M,)
        What each box stands for; several boxes may have one number.
    plane : ndarray of float64, shape (M, 4)
        ``[x_lo, y_lo, x_hi, y_hi]``.
    streams : ndarray of int64, shape (M,)
        The number of the stream whose elements each box is for.
    space : Space
    """

    def __init__(self, numbers: np.ndarray, plane: np.ndarray, streams: np.ndarray, space: Space) -> None:
        self.space = space
        self._given = numbers, plane, streams

    @functools.cached_property
    def _turned(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The numbers, the boxes with copies where they reach an end of a circle, and the streams."""
        numbers, plane, streams = self._given
        place, plane = with_turns(np.arange(len(numbers)), plane, self.space)
        return numbers[place], plane, streams[place]

    @functools.cached_property
    def _of_stream(self) -> "dict[int, _Boxes]":
        """The boxes of each stream, by its number."""
        numbers, plane, streams = self._turned
        return {
            stream: _Boxes(numbers[streams == stream], plane[streams == stream])
            for stream in distinct(streams).tolist()
        }

    def met_by(self, stream: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs of elements and numbers of boxes that meet in the plane, and some that are only near.

        Parameters
        ----------
        stream : ndarray of int64, shape (N,)
            The number of each element's stream.
        bounds : ndarray of float64, shape (N, 2n)
            The boxes of the elements.

        Returns
        -------
        row, number : ndarray of int64, shape (P,)
            A pair may repeat.
        """
        found = [np.empty((2, 0), dtype=np.int64)]
        for number, boxes in self._of_stream.items() if len(stream) else ():
            rows = np.flatnonzero(stream == number)
            if len(rows):
                row, of_box = boxes.met_by(bounds if len(rows) == len(bounds) else bounds[rows], self.space)
                found.append(np.stack([rows[row], of_box]))
        return tuple(np.hstack(found))

    def meet(self, stream: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """Tell which elements meet a box, or are near one: bool of shape (N,); see `met_by`."""
        meet = np.zeros(len(stream), dtype=bool)
        meet[self.met_by(stream, bounds)[0]] = True
        return meet

    def meeting(self, look: Look) -> Near:
        """Return the same pairs as `met_by`, found by an index over elements: positions of these, and numbers."""
        numbers, plane, streams = self._turned
        near = look(plane)
        mine = near.elements.stream[near.row] == streams[near.box]
        return replace(near, box=numbers[near.box[mine]], row=near.row[mine])


class _Boxes:
    """The boxes of one stream."""

    def __init__(self, numbers: np.ndarray, plane: np.ndarray) -> None:
        self.numbers, self.plane = numbers, plane

    @functools.cached_property
    def index(self) -> QueryIndex:
        return QueryIndex(self.plane, self.numbers, max(MAX_ENTRIES, 8 * len(self.numbers)))

    def met_by(self, bounds: np.ndarray, space: Space) -> tuple[np.ndarray, np.ndarray]:
        if len(bounds) * len(self.numbers) > FEW_PAIRS:
            return self.index.at(bounds, space, in_plane)
        row, boxes = with_turns(np.arange(len(bounds)), in_plane(bounds, space), space)
        meet = np.ones((len(row), len(self.numbers)), dtype=bool)
        for axis in (0, 1):
            meet &= boxes[:, None, axis] <= self.plane[:, 2 + axis]
            meet &= self.plane[:, axis] <= boxes[:, None, 2 + axis]
        element, box = np.nonzero(meet)
        return row[element], self.numbers[box]

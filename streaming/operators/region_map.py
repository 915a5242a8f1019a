"""The region map: how a space is cut into regions. It is data, the same in every process at every batch.

A map is a tree of cuts. Its leaves are the regions, which have the numbers 0, 1, 2 and so on. Another map may have more
regions or fewer, and give other numbers to the same cells: a change of the map moves the state (`servers.rescaling`).

References
----------
BBoxDB Streams (2022), section 3.2 (distribution regions, the global index).
PLACE* (2007), section 3 (regional servers).
"""

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streaming.errors import LookoutError
from streaming.language import gettext
from streaming.spaces import Space

# A part of a turn that is larger than the rounding error when a coordinate is moved by a turn.
ROUNDING = 1e-12
MOST_REGIONS = 256


class InvalidMap(LookoutError):
    """A document is no region map of its space, or a map cannot be changed as asked."""


@dataclass(frozen=True)
class RegionCut:
    """An inner node of the tree: what lies below `at` on an axis belongs to `low`, everything else to `high`."""

    axis: int
    at: float
    low: "int | RegionCut"
    high: "int | RegionCut"


# The number of a region, or a cut.
Tree = int | RegionCut


@dataclass(frozen=True)
class RegionMap:
    """An immutable cut of a space into regions.

    Parameters
    ----------
    space : Space
    tree : int or RegionCut
        Its leaves are the numbers from 0 up, each once.
    number : int
        How many maps the space has had before.
    places : tuple of int
        For each region the number of the place that runs it; place *p* is in task *p* modulo the number of tasks. By
        default, a region's place is its number.
    why : str
        In words, what the map changed in the one before, and for what reason.

    Raises
    ------
    InvalidMap
        If the leaves are not numbered so, a cut does not lie within its cell, or there are more than `MOST_REGIONS`.
    """

    space: Space
    tree: Tree
    number: int = 0
    places: tuple[int, ...] = ()
    why: str = ""

    def __post_init__(self) -> None:
        leaves = sorted(_leaves(self.tree))
        if leaves != list(range(len(leaves))) or len(leaves) > MOST_REGIONS:
            raise InvalidMap(
                "regions must have the numbers from 0 to at most %(most_regions)s; got %(leaves)s",
                most_regions=MOST_REGIONS - 1,
                leaves=leaves,
            )
        if not self.places:
            object.__setattr__(self, "places", tuple(leaves))
        if len(self.places) != len(leaves) or min(self.places) < 0:
            raise InvalidMap(
                "each of the %(count)s regions needs a place from 0 up; got %(places)s",
                count=len(leaves),
                places=self.places,
            )
        whole = [[axis.lo for axis in self.space.dimensions], [axis.hi for axis in self.space.dimensions]]
        _check(self.tree, whole, self.space)

    @functools.cached_property
    def regions(self) -> int:
        """How many regions there are."""
        return len(self.places)

    @functools.cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The nodes as arrays: axis, border, and the nodes of the low and the high side. A leaf leads to itself."""
        nodes: list[tuple[int, float, int, int, int]] = []
        _list_nodes(self.tree, nodes)
        axis, at, low, high, region = zip(*nodes, strict=True)
        return np.array(axis), np.array(at), np.array(low), np.array(high), np.array(region)

    @functools.cached_property
    def _depth(self) -> int:
        return _depth(self.tree)

    def region_of(self, bounds: np.ndarray) -> np.ndarray:
        """Return the one region that keeps each box (N, 2n): the region of its low corner, int64 of shape (N,).

        A box outside the space gets the nearest region.
        """
        axis, at, low, high, region = self._nodes
        node, rows = np.zeros(len(bounds), dtype=np.int64), np.arange(len(bounds))
        for _ in range(self._depth):
            # Only a box that meets nothing has NaN for a bound, and a leaf has NaN for a border: neither is above.
            above = bounds[rows, axis[node]] >= at[node]
            node = np.where(above, high[node], low[node])
        return region[node]

    def keeps(self, region: int, bounds: np.ndarray) -> np.ndarray:
        """Tell which boxes (N, 2n) a region keeps, bool of shape (N,): those for which `region_of` returns it.

        This looks only at the cuts around the region. None keeps what has a number that no region has.
        """
        around = _cuts_around(self.tree, region)
        kept = np.full(len(bounds), around is not None)
        for cut, above in around or ():
            kept &= (bounds[:, cut.axis] >= cut.at) == above
        return kept

    def regions_of(self, bounds: np.ndarray) -> np.ndarray:
        """Tell which regions each box (N, 2n) meets, bool of shape (N, regions); `region_of` is one of them.

        Boxes that meet have a region in common, also if they meet after a turn in a dimension that wraps.
        """
        met = np.zeros((len(bounds), self.regions), dtype=bool)
        self._mark(met, np.arange(len(bounds)), bounds)
        n, axes = self.space.n, [axis for axis, known in enumerate(self.space.dimensions) if known.wraps]
        extents = [self.space.dimensions[axis].extent for axis in axes]
        for turns in itertools.product(*([0.0, extent, -extent] for extent in extents)):
            if not any(turns):
                continue
            # A turn rounds: without slack, two intervals that meet at a border might lie on its two sides.
            moves = [(axis, turn, abs(turn) * ROUNDING) for axis, turn in zip(axes, turns, strict=True) if turn]
            within = np.ones(len(bounds), dtype=bool)
            for axis, turn, slack in moves:
                known = self.space.dimensions[axis]
                within &= bounds[:, axis] + (turn - slack) <= known.hi
                within &= bounds[:, n + axis] + (turn + slack) >= known.lo
            rows = np.flatnonzero(within)
            turned = bounds[rows]
            for axis, turn, slack in moves:
                turned[:, axis] += turn - slack
                turned[:, n + axis] += turn + slack
            self._mark(met, rows, turned)
        return met

    def _mark(self, met: np.ndarray, rows: np.ndarray, boxes: np.ndarray) -> None:
        """Mark the regions that boxes meet, which are those of some rows."""
        n, left = self.space.n, [(self.tree, np.arange(len(rows)))]
        while left:
            tree, some = left.pop()
            if not isinstance(tree, RegionCut):
                met[rows[some], tree] = True
            elif len(some):
                above = boxes[some, n + tree.axis] >= tree.at
                below = ~(boxes[some, tree.axis] >= tree.at)
                left += [(tree.low, some[below]), (tree.high, some[above])]

    @functools.cached_property
    def cells(self) -> np.ndarray:
        """The box of each region, float64 of shape (regions, 2n)."""
        cells = np.empty((self.regions, 2 * self.space.n))
        whole = [getattr(axis, side) for side in ("lo", "hi") for axis in self.space.dimensions]
        for region, box in _cells(self.tree, whole):
            cells[region] = box
        return cells

    def split(self, region: int, axis: int, at: float, place: int | None = None) -> "RegionMap":
        """Return the next map, in which a region keeps what lies below `at`, and a new one has the rest.

        Parameters
        ----------
        region, axis : int
        at : float
        place : int, optional
            Of the new region; by default its number.
        """
        new = self.regions
        tree = _replaced(self.tree, region, RegionCut(axis, at, region, new))
        return RegionMap(self.space, tree, self.number + 1, (*self.places, new if place is None else place))

    @functools.cached_property
    def siblings(self) -> list[tuple[int, int]]:
        """The pairs of regions that can be merged: the low and the high side of a cut."""
        sides = [(cut.low, cut.high) for cut in _cuts(self.tree)]
        return [(low, high) for low, high in sides if isinstance(low, int) and isinstance(high, int)]

    def merged(self, low: int, high: int) -> "RegionMap":
        """Return the next map, in which two `siblings` are one region, with the place of `low`.

        The number of `high` becomes free, and the last region gets it.
        """
        if (low, high) not in self.siblings:
            raise InvalidMap("regions %(low)s and %(high)s are not the two sides of one cut", low=low, high=high)
        last = self.regions - 1
        number = {region: region for region in range(last) if region != high} | {last: high}
        if high == last:
            number = {region: region for region in range(last)}
        places = dict(sorted((now, self.places[was]) for was, now in number.items()))
        return RegionMap(
            self.space, _renumbered(_joined(self.tree, low, high), number), self.number + 1, tuple(places.values())
        )

    def moved(self, region: int, place: int) -> "RegionMap":
        """Return the next map, in which a region is at another place."""
        places = (*self.places[:region], place, *self.places[region + 1 :])
        return RegionMap(self.space, self.tree, self.number + 1, places)

    def after(self, other: "RegionMap", why: str = "") -> "RegionMap":
        """Return this map as the one that follows another, for a reason."""
        return replace(self, number=other.number + 1, why=why)

    def differs(self, other: "RegionMap") -> str:
        """Return in words how this map differs from the one before it."""
        if self.regions > other.regions:
            return gettext("split: %(before)s regions become %(after)s") % {
                "before": other.regions,
                "after": self.regions,
            }
        if self.regions < other.regions:
            return gettext("merged: %(before)s regions become %(after)s") % {
                "before": other.regions,
                "after": self.regions,
            }
        moved = [region for region in range(self.regions) if self.places[region] != other.places[region]]
        return (
            gettext("moved to other tasks: regions %(moved)s") % {"moved": moved}
            if self.tree == other.tree
            else gettext("cut anew")
        )

    def document(self) -> dict[str, Any]:
        """Return the map as a JSON object; `of` reads it."""
        return {"number": self.number, "tree": _written(self.tree), "places": list(self.places), "why": self.why}

    @classmethod
    def of(cls, space: Space, document: Mapping[str, Any]) -> "RegionMap":
        """Return the map that a document describes.

        Raises
        ------
        InvalidMap
            If it is none.
        """
        try:
            places = tuple(map(int, document["places"]))
            return cls(space, _read(document["tree"]), int(document["number"]), places, str(document.get("why", "")))
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidMap("this is no region map: %(error)s", error=repr(error)) from None

    @classmethod
    def grid(cls, space: Space, regions: int) -> "RegionMap":
        """Return a grid of equal cells over the first two dimensions, as near to a square as the number allows.

        Examples
        --------
        >>> from streaming.spaces import EARTH
        >>> RegionMap.grid(EARTH, 4).document()["tree"]
        [0, 0.0, [1, 0.0, 0, 1], [1, 0.0, 2, 3]]
        """
        if not 1 <= regions <= MOST_REGIONS:
            raise InvalidMap(
                "there must be 1 to %(most_regions)s regions; got %(regions)s",
                most_regions=MOST_REGIONS,
                regions=repr(regions),
            )
        rows = max(d for d in range(1, int(regions**0.5) + 1) if regions % d == 0) if space.n > 1 else 1
        columns = regions // rows

        def row_tree(column: int) -> Tree:
            return _even(space, 1, rows, [column * rows + row for row in range(rows)])

        return cls(space, _even(space, 0, columns, [row_tree(column) for column in range(columns)]))


def _even(space: Space, axis: int, count: int, trees: Sequence[Tree]) -> Tree:
    """Return a tree that cuts an axis into `count` equal parts, in each of which is one of some trees."""
    if count == 1:
        return trees[0]
    known = space.dimensions[axis]
    return _cut_evenly(axis, [known.lo + known.extent * place / count for place in range(1, count)], trees)


def _cut_evenly(axis: int, borders: Sequence[float], trees: Sequence[Tree]) -> Tree:
    if not borders:
        return trees[0]
    middle = len(trees) // 2
    low = _cut_evenly(axis, borders[: middle - 1], trees[:middle])
    return RegionCut(axis, borders[middle - 1], low, _cut_evenly(axis, borders[middle:], trees[middle:]))


def _list_nodes(tree: Tree, nodes: list[tuple[int, float, int, int, int]]) -> int:
    """Append the nodes of a tree, each as axis, border, low and high side, and region; return the place of its root."""
    node = len(nodes)
    nodes.append((0, np.nan, node, node, -1))
    if isinstance(tree, RegionCut):
        nodes[node] = tree.axis, tree.at, _list_nodes(tree.low, nodes), _list_nodes(tree.high, nodes), -1
    else:
        nodes[node] = 0, np.nan, node, node, tree
    return node


def _leaves(tree: Tree) -> Iterator[int]:
    if isinstance(tree, RegionCut):
        yield from _leaves(tree.low)
        yield from _leaves(tree.high)
    else:
        yield tree


def _cuts(tree: Tree) -> Iterator[RegionCut]:
    if isinstance(tree, RegionCut):
        yield tree
        yield from _cuts(tree.low)
        yield from _cuts(tree.high)


def _cuts_around(tree: Tree, region: int) -> list[tuple[RegionCut, bool]] | None:
    """Return the cuts on the way to a region, each with whether the region is on its high side; None for no region."""
    if not isinstance(tree, RegionCut):
        return [] if tree == region else None
    for side, above in ((tree.low, False), (tree.high, True)):
        if (further := _cuts_around(side, region)) is not None:
            return [(tree, above), *further]
    return None


def _depth(tree: Tree) -> int:
    return 1 + max(_depth(tree.low), _depth(tree.high)) if isinstance(tree, RegionCut) else 0


def _check(tree: Tree, cell: Sequence[Sequence[float]], space: Space) -> None:
    if not isinstance(tree, RegionCut):
        return
    if not 0 <= tree.axis < space.n:
        raise InvalidMap(
            "a cut must be across one of the %(n)s dimensions; got %(axis)s", n=space.n, axis=repr(tree.axis)
        )
    low, high = cell[0][tree.axis], cell[1][tree.axis]
    if not low < tree.at < high:
        name = space.dimensions[tree.axis].name
        raise InvalidMap(
            "a cut of %(name)s from %(low)s to %(high)s must lie between; got %(at)s",
            name=name,
            low=low,
            high=high,
            at=repr(tree.at),
        )
    for side, bound in ((tree.low, 1), (tree.high, 0)):
        corners = [list(cell[0]), list(cell[1])]
        corners[bound][tree.axis] = tree.at
        _check(side, corners, space)


def _cells(tree: Tree, box: list[float]) -> Iterator[tuple[int, list[float]]]:
    """Yield each region and its box."""
    if not isinstance(tree, RegionCut):
        yield tree, box
        return
    n = len(box) // 2
    yield from _cells(tree.low, [*box[: n + tree.axis], tree.at, *box[n + tree.axis + 1 :]])
    yield from _cells(tree.high, [*box[: tree.axis], tree.at, *box[tree.axis + 1 :]])


def _replaced(tree: Tree, region: int, by: Tree) -> Tree:
    if isinstance(tree, RegionCut):
        return replace(tree, low=_replaced(tree.low, region, by), high=_replaced(tree.high, region, by))
    return by if tree == region else tree


def _joined(tree: Tree, low: int, high: int) -> Tree:
    if not isinstance(tree, RegionCut):
        return tree
    if (tree.low, tree.high) == (low, high):
        return low
    return replace(tree, low=_joined(tree.low, low, high), high=_joined(tree.high, low, high))


def _renumbered(tree: Tree, numbers: Mapping[int, int]) -> Tree:
    if isinstance(tree, RegionCut):
        return replace(tree, low=_renumbered(tree.low, numbers), high=_renumbered(tree.high, numbers))
    return numbers[tree]


def _written(tree: Tree) -> Any:
    return [tree.axis, tree.at, _written(tree.low), _written(tree.high)] if isinstance(tree, RegionCut) else tree


def _read(document: Any) -> Tree:
    if isinstance(document, Sequence) and not isinstance(document, str):
        axis, at, low, high = document
        return RegionCut(int(axis), float(at), _read(low), _read(high))
    return int(document)

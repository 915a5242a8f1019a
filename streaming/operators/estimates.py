"""Estimate, before a query is registered, how many pairs it would compare and tell: from counts and samples alone.

What an estimate is compared with is the room that a batch has for pairs (`allowance`). It is rough. Filters are not
evaluated, since a sample has no properties; of features the boxes count, not the shapes.

References
----------
P. J. Haas, J. F. Naughton, S. Seshadri, A. N. Swami, "Selectivity and Cost Estimation for Joins Based on Random
Sampling", Journal of Computer and System Sciences 52(3), 1996, section 2: the cross product of two samples.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.operators.allowance import FOUND, KNOWN, MOST
from streaming.operators.box_sample import BoxSample
from streaming.operators.boxes import box_array, in_plane, intersects, points_of, transformed
from streaming.operators.metres import within_reach
from streaming.operators.places import middles, within
from streaming.spaces import Space

# So many boxes of each side are compared with each other.
COMPARED = 512
# Beyond this part of the room, whoever asks has to confirm it; at so many times the room, pairs alone are too many.
DOUBTFUL, MOST_TIMES = 0.5, 10


@dataclass(frozen=True)
class Known:
    """What is known of the objects and features that a query would compare.

    Parameters
    ----------
    objects : mapping of str to BoxSample
        The objects that the engine has now, by stream.
    features : BoxSample or None
        Those of the layer that the query is joined with.
    """

    objects: Mapping[str, BoxSample]
    features: BoxSample | None = None


@dataclass(frozen=True)
class Estimate:
    """What a query would cost once all of its objects are compared, as it is when it is registered.

    Parameters
    ----------
    pairs : float
        Pairs that would be compared, about.
    matches : float
        Pairs that would be in the answer, at most about: filters are not evaluated.
    room : float
        For how many pairs a batch has room, where one that is told counts as `allowance.FOUND`.
    sure : bool
        Whether no filter could make the pairs fewer that are compared.
    """

    pairs: float
    matches: float
    room: float
    sure: bool

    @property
    def work(self) -> float:
        """The pairs in the unit of the room."""
        return self.pairs + FOUND * self.matches

    @property
    def hopeless(self) -> bool:
        """Whether the pairs that would be compared alone are far more than there is room for."""
        return self.sure and self.pairs > MOST_TIMES * self.room

    @property
    def doubtful(self) -> bool:
        """Whether there may be no room for it."""
        return self.work > DOUBTFUL * self.room

    def document(self) -> dict[str, int]:
        """Return the numbers as clients get them."""
        told = {"pairs": self.pairs, "matches": self.matches, "work": self.work, "room": self.room}
        return {name: round(number) for name, number in told.items()}


def needs(plan: Plan) -> tuple[tuple[str, ...], str | None]:
    """Return the streams and the layer of which an estimate needs samples; no stream if nothing is to be estimated."""
    kind, partners = kind_of(plan), getattr(plan, "partners", None)
    evaluation = kind.evaluation(plan)
    if evaluation is Evaluation.STREAM_JOIN and partners is not None:
        return (plan.stream, partners.name), None
    if evaluation is Evaluation.REGIONAL and (layer := kind.layer(plan)) is not None:
        return (plan.stream,), layer
    return (), None


def estimate(plan: Plan, known: Known, space: Space) -> Estimate | None:
    """Estimate what a query would cost; None for a query that compares no pairs, or of which too little is known.

    Parameters
    ----------
    plan : Plan
    known : Known
    space : Space

    Returns
    -------
    Estimate or None
        Of a closest approach the pairs are at least so many: how far the objects will move is not considered.

    Examples
    --------
    >>> from streaming.plans import parse_plan
    >>> from streaming.spaces import EARTH
    >>> ships = BoxSample.drawn(np.zeros((300, 6)), 300, count=30_000)
    >>> near = {"stream": "ships", "predicate": "dwithin", "distance": 5_000}
    >>> found = estimate(parse_plan({"stream": "ships", "kind": "join", "join": near}), Known({"ships": ships}), EARTH)
    >>> found.document()["pairs"], found.hopeless
    (899970000, True)
    """
    streams, layer = needs(plan)
    sides = [known.objects.get(stream) for stream in streams] + ([known.features] if layer is not None else [])
    if not sides or any(side is None or not len(side) for side in sides):
        return None
    objects, partners = (side.thinned(COMPARED) for side in sides if side is not None)
    inside = _inside(plan, objects.bounds, space)
    met = _met(plan, objects.bounds, partners.bounds, space)
    each = objects.weight[:, None] * partners.weight
    if alike := len(streams) == 2 and streams[0] == streams[1]:
        # No object is its own partner, and a sample that stands for many has too few pairs of two.
        np.fill_diagonal(met, False)
        each = each * (1 - 1 / objects.count) / max(1 - 1 / len(objects), 1 / len(objects))
    # Joins with layers compare only what their ranges find; joins with streams compare first.
    pairs = (met * each)[inside if layer is not None else slice(None)].sum()
    matches = (_near(plan, met, objects.bounds, partners.bounds, space) * each)[inside].sum()
    count = objects.count if alike else sum(known.objects[stream].count for stream in streams)
    sure = layer is None or not (plan.where or plan.filters)
    return Estimate(float(pairs), float(matches), MOST + KNOWN * count, sure)


def _inside(plan: Plan, bounds: np.ndarray, space: Space) -> np.ndarray:
    """Tell which objects are in the area of a query, bool of shape (K,)."""
    rows = np.arange(len(bounds))
    return intersects(bounds, rows, box_array([kind_of(plan).box(plan)], space), np.zeros_like(rows), space)


def _met(plan: Plan, bounds: np.ndarray, others: np.ndarray, space: Space) -> np.ndarray:
    """Tell which pairs may be compared, given the boxes of both sides: bool of shape (K, L)."""
    steps, distance = _reach(plan)
    if not math.isfinite(distance):
        return np.ones((len(bounds), len(others)), dtype=bool)
    boxes = transformed(bounds, steps, space)
    reach = within_reach(boxes, distance, space) if distance else boxes
    row, other = (part.ravel() for part in np.indices((len(bounds), len(others))))
    return intersects(reach, row, others, other, space).reshape(len(bounds), len(others))


def _near(plan: Any, met: np.ndarray, bounds: np.ndarray, others: np.ndarray, space: Space) -> np.ndarray:
    """Tell which of the pairs that are compared may be in the answer: bool of shape (K, L).

    Of objects without an extent, those that are too far are none, though their boxes reach each other.
    """
    steps, distance = _reach(plan)
    plane = in_plane(bounds, space)
    if not distance or not math.isfinite(distance) or steps or points_of(plane) is None:
        return met
    row, other = np.nonzero(met)
    near = np.zeros_like(met)
    near[row, other] = within(others[other], middles(bounds, space)[row, :2], np.full(len(row), distance), space)
    return near


def _reach(plan: Any) -> tuple[tuple[Any, ...], float]:
    """Return how far an object reaches for partners: transformations of its box, then a distance."""
    kind = kind_of(plan)
    predicted = kind.prediction(plan)
    return ((), predicted.within_m) if predicted is not None else kind.layer_reach(plan)

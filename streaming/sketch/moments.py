"""The moments of what a selection chooses: for regression and for whoever computes with them.

A leaf that is cut counts with the estimated part of its elements, and with the means and co-moments of all of them.
"""

from dataclasses import dataclass

import numpy as np

from streaming.sketch.bins import COMPLETE
from streaming.sketch.chosen import ChosenLeaves, choose
from streaming.sketch.selection import EVERYTHING, Selection
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.sketch import Sketch


@dataclass(frozen=True)
class Moments:
    """Moments of the features with co-moments, over the elements that have all of them.

    Parameters
    ----------
    features : tuple of str
        F names.
    n : float
        Elements; not an integer if leaves are cut.
    mean : ndarray of float64, shape (F,)
    comoment : ndarray of float64, shape (F, F)
        Sums of products of differences from the means. ``comoment / (n - 1)`` is the covariance matrix.
    low, high : ndarray of float64, shape (F,)
        Extremes of the chosen leaves.
    cut : float
        Which part of the `n` elements lies in leaves that are cut: 0 if the moments are exact but for rounding.
    """

    features: tuple[str, ...]
    n: float
    mean: np.ndarray
    comoment: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cut: float


def moments(sketch: Sketch, selection: Selection = EVERYTHING) -> Moments:
    """Return the moments of what a selection chooses; see `Moments`.

    Raises
    ------
    InvalidSketch
        If the sketch keeps no co-moments.
    """
    return moments_of(choose(sketch, selection))


def moments_of(chosen: ChosenLeaves) -> Moments:
    """Return the moments of chosen leaves; the features are those of ``chosen.settings.comoments``."""
    settings = chosen.settings
    features = settings.comoment_features
    if not features:
        raise InvalidSketch("a sketch must keep co-moments of features; got none in its settings")
    weight = chosen.share * chosen.column("count") * ((chosen.column("planes") & COMPLETE) != 0)
    mean, m2, low, high = (
        np.stack([chosen.column(name, feature) for feature in features]) for name in ("mean", "m2", "low", "high")
    )
    n = float(weight.sum())
    centre = (mean * weight).sum(axis=1) / (n or 1.0)
    apart = mean - centre[:, None]
    comoment = (apart * weight) @ apart.T
    kept = chosen.share * (weight > 0)
    comoment[np.diag_indices(len(features))] += (m2 * kept).sum(axis=1)
    place = {feature: number for number, feature in enumerate(features)}
    for pair, (one, other) in enumerate(settings.pairs):
        added = (chosen.column("comoment", pair) * kept).sum()
        comoment[place[one], place[other]] += added
        comoment[place[other], place[one]] += added
    used = weight > 0
    extremes = low[:, used].min(axis=1, initial=np.inf), high[:, used].max(axis=1, initial=-np.inf)
    cut = float(weight[len(weight) - len(chosen.cut.share) :].sum()) / (n or 1.0)
    return Moments(settings.comoments, n, centre, comoment, *extremes, cut)

"""How far a regression over a selection that cuts leaves may be from the one over the elements themselves.

Regressions of all leaves that lie within the selection are exact. Of a leaf that is cut, an estimated part of the
elements counts, with the means and co-moments of all of them. The coefficients are a smooth function of sums over
leaves, so their error is, to first order, the error of these sums, seen through the normal equations (the delta
method). The sums are those of the scores of elements: the products of the features and of the residual.

References
----------
A. W. van der Vaart, "Asymptotic Statistics", 1998, chapter 3 (the delta method) and section 5.3 (scores).
"""

import math

import numpy as np

from streaming.sketch.answers import deviations
from streaming.sketch.bins import COMPLETE
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.inference.regression import LinearFit
from streaming.sketch.moments import Moments
from streaming.sketch.views import SAMPLE, partly_alike


def fit_errors(chosen: ChosenLeaves, known: Moments, fit: LinearFit) -> np.ndarray:
    """Return the standard deviation of the errors of the intercept and the coefficients, float64 of shape (P + 1,).

    It is 0 if the selection cuts no leaf. Besides them, a coefficient of the population differs from the exact one as
    `LinearFit.covariance` says.

    Parameters
    ----------
    chosen : ChosenLeaves
    known : Moments
        Of the chosen leaves.
    fit : LinearFit
        Of these moments.
    """
    errors = np.zeros(len(fit.by) + 1)
    if not len(chosen.cut.share) or math.isnan(fit.intercept) or fit.residual_std == 0:
        return errors
    centre = known.mean[[known.features.index(name) for name in fit.by]]
    n, score, square = _scores(chosen, fit, centre)
    part = chosen.cut.share
    freedom = np.sqrt(np.minimum(1.0, (1 - part) / np.maximum(part, 1e-12)))
    # The part is uncertain, and so is how many of few elements are among it.
    of_count = np.sqrt(part * (1 - part) * (n**2 / (1 + SAMPLE) + n))
    # Of features less their means: the intercept is then the mean, and independent of the slopes.
    inverse = np.zeros((len(errors), len(errors)))
    inverse[0, 0], inverse[1:, 1:] = 1 / fit.n, fit.covariance[1:, 1:] / fit.residual_std**2
    spread = np.sqrt(np.einsum("pi,ijc,pj->pc", inverse, square, inverse))
    errors = np.hypot(partly_alike(n * part * freedom * spread), partly_alike((inverse @ score) * of_count))
    # To the second order, the normal equations themselves are as uncertain as the count.
    errors *= 1 + 2 * partly_alike(of_count) / fit.n
    errors[0] = math.hypot(errors[0], float(np.abs(centre) @ errors[1:]))
    return errors


def bounds(fit: LinearFit, errors: np.ndarray, confidence: float = 0.95) -> np.ndarray:
    """Return between which numbers the exact intercept and coefficients lie, float64 of shape (P + 1, 2).

    Parameters
    ----------
    fit : LinearFit
    errors : ndarray of float64, shape (P + 1,)
        See `fit_errors`.
    confidence : float
    """
    value = np.append(fit.intercept, fit.coefficients)
    half = deviations(confidence) * errors
    return np.column_stack([value - half, value + half])


def _scores(chosen: ChosenLeaves, fit: LinearFit, centre: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how many elements of the leaves that are cut have all features, and the scores of these.

    Returns
    -------
    n : ndarray of float64, shape (C,)
    score : ndarray of float64, shape (P + 1, C)
        The mean of a leaf's elements.
    square : ndarray of float64, shape (P + 1, P + 1, C)
        The mean of the products of two scores of an element, if residuals do not depend on the features.
    """
    position = [chosen.settings.position(name) for name in (fit.feature, *fit.by)]
    n = chosen.partial("count") * ((chosen.partial("planes") & COMPLETE) != 0)
    mean = np.stack([chosen.partial("mean", feature) for feature in position])
    within = _covariances(chosen, position, n)
    residual = mean[0] - fit.intercept - fit.coefficients @ mean[1:]
    contrast = np.append(1.0, -fit.coefficients)
    apart = mean[1:] - centre[:, None]
    of_feature = np.einsum("j,ijc->ic", contrast, within[1:])
    score = np.concatenate([residual[None], apart * residual + of_feature])
    of_residual = residual**2 + np.maximum(np.einsum("i,ijc,j->c", contrast, within, contrast), 0.0)
    # Few elements say little about their spread; that of all elements counts as one of them.
    of_residual += fit.residual_std**2 / np.maximum(n, 1)
    square = np.zeros((len(position), len(position), len(n)))
    square[0, 0] = of_residual
    square[1:, 1:] = (within[1:, 1:] + apart[:, None] * apart[None]) * of_residual
    square[0, 1:] = square[1:, 0] = apart * of_residual
    return n, score, square


def _covariances(chosen: ChosenLeaves, position: list[int], n: np.ndarray) -> np.ndarray:
    """Return the covariance matrix of features within each leaf that is cut, float64 of shape (P + 1, P + 1, C)."""
    place = {frozenset(pair): number for number, pair in enumerate(chosen.settings.pairs)}
    found = np.empty((len(position), len(position), len(n)))
    for one, first in enumerate(position):
        found[one, one] = chosen.partial("m2", first)
        for other, second in enumerate(position[:one]):
            pair = chosen.partial("comoment", place[frozenset((first, second))])
            found[one, other] = found[other, one] = pair
    return found / np.maximum(n, 1)

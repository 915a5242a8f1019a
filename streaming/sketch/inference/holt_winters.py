"""The model `holt_winters`: that of the package river, which learns one step after the other.

It has a level, a trend and a season of a day, or of a year if steps are longer than half a day; all three follow the
newest steps. A step without values counts as what was forecast for it. The band is made of the model's own errors:
after every step it forecasts some of those to come, and remembers how far off it was.

The package is the extra `models`.

References
----------
P. R. Winters, "Forecasting Sales by Exponentially Weighted Moving Averages", Management Science 6(3), 1960.
"""

from dataclasses import dataclass

import numpy as np
from river.time_series import HoltWinters

from streaming.sketch.inference.quantiles import band_of
from streaming.sketch.inference.seasons import YEAR_US
from streaming.sketch.inference.series import MeanSeries, State, unknown
from streaming.sketch.settings import DAY_US

ALPHA, BETA, GAMMA = 0.3, 0.001, 0.2
# How far ahead errors are measured, in steps, and how many of the last ones are remembered for each distance.
DISTANCES = 2 ** np.arange(11)
REMEMBERED = 400
LEAST_ERRORS = 20
# A gap of more steps than this begins the series anew.
MOST_MISSING = 10_000


class HoltWintersModel:
    """A level, a trend and a season; see the module. Its state has them, forecasts to come, and the last errors."""

    def begin(self, every_us: int) -> State:
        """Return the state before the first step."""
        return _Learner.new(every_us).state()

    def learn_many(self, state: State, steps: MeanSeries) -> State:
        """Return the state after some more steps."""
        learner = _Learner.of(state)
        for start_us, mean in zip(steps.start_us.tolist(), steps.mean.tolist(), strict=True):
            learner = learner.learn(start_us, mean)
        return learner.state()

    def predict(self, state: State, horizon: int, confidence: float = 0.95) -> np.ndarray:
        """Return a forecast, float64 of shape (horizon, 3); see `Model`."""
        learner = _Learner.of(state)
        if (np.isfinite(learner.errors).sum(axis=1)[0]) < LEAST_ERRORS:
            return unknown(horizon)
        value = np.array(learner.model.forecast(horizon))
        low, high = band_of(learner.errors, DISTANCES, horizon, confidence)
        return np.column_stack([value, value + low, value + high])


@dataclass
class _Learner:
    """What learns a series, while it does.

    Parameters
    ----------
    model : HoltWinters
        The model of river.
    every_us : int
    first : list of float
        The values of the first season, from which the model begins.
    place : ndarray of int64, shape (2,)
        The time of the next step, and how many steps there were.
    ahead : ndarray of float64, shape (distances, longest distance)
        The forecast that was made for a step, at the step's number modulo the distance; NaN if none was.
    errors : ndarray of float64, shape (distances, REMEMBERED)
        The last errors, each at the step's number modulo `REMEMBERED`.
    """

    model: HoltWinters
    every_us: int
    first: list[float]
    place: np.ndarray
    ahead: np.ndarray
    errors: np.ndarray

    @classmethod
    def new(cls, every_us: int) -> "_Learner":
        """Return what has learnt nothing."""
        ahead = np.full((len(DISTANCES), int(DISTANCES[-1])), np.nan)
        errors = np.full((len(DISTANCES), REMEMBERED), np.nan)
        return cls(_model(every_us), every_us, [], np.zeros(2, dtype=np.int64), ahead, errors)

    def learn(self, start_us: int, mean: float) -> "_Learner":
        """Return what has learnt one step more: itself, unless the series begins anew."""
        due, count = self.place.tolist()
        missing = (start_us - due) // self.every_us if count else 0
        if missing > MOST_MISSING:
            return _Learner.new(self.every_us).learn(start_us, mean)
        for _ in range(missing if len(self.model.level) else 0):
            self._step(self.model.forecast(1)[0], known=False)
        self._step(mean, known=True)
        self.place[0] = start_us + self.every_us
        return self

    def _step(self, mean: float, known: bool) -> None:
        number, model, rows = int(self.place[1]), self.model, np.arange(len(DISTANCES))
        self.place[1] += 1
        at = number % DISTANCES
        self.errors[:, number % REMEMBERED] = mean - self.ahead[rows, at] if known else np.nan
        if not len(model.level):
            self._begin(mean)
            return
        model.learn_one(mean)
        assert model.trend is not None
        season = np.array(model.season)[-model.seasonality :]
        # The forecast for a step lies where the step before it, which is just learnt, had its own.
        self.ahead[rows, at] = model.level[-1] + DISTANCES * model.trend[-1] + season[(DISTANCES - 1) % len(season)]

    def _begin(self, mean: float) -> None:
        """Begin the model once the first season is there; river itself would take ratios for an additive season."""
        self.first.append(mean)
        if len(self.first) < max(2, self.model.seasonality):
            return
        level, trend, season = float(np.mean(self.first)), self.model.trend, self.model.season
        assert trend is not None and season is not None
        self.model.level.append(level)
        trend.append(0.0)
        season.extend([value - level for value in self.first[-self.model.seasonality :]])
        self.model._initialized, self.first = True, []

    def state(self) -> State:
        """Return it as arrays."""
        parts = {name: np.array(getattr(self.model, name), dtype=np.float64) for name in _PARTS}
        return parts | {
            "first": np.array(self.first, dtype=np.float64),
            "every_us": np.array([self.every_us]),
            "place": self.place,
            "ahead": self.ahead,
            "errors": self.errors,
        }

    @classmethod
    def of(cls, state: State) -> "_Learner":
        """Return what `state` describes; the arrays of the state are left as they are."""
        every_us = int(state["every_us"][0])
        model = _model(every_us)
        for name in _PARTS:
            getattr(model, name).extend(state[name].tolist())
        model._initialized = len(model.level) > 0
        copies = (state[name].copy() for name in ("place", "ahead", "errors"))
        return cls(model, every_us, state["first"].tolist(), *copies)


_PARTS = ("level", "trend", "season")


def _model(every_us: int) -> HoltWinters:
    """Return a model of river whose season has two steps or more; without one, the season is a constant."""
    lengths = [round(period / every_us) for period in (DAY_US, YEAR_US) if 2 * every_us <= period]
    return HoltWinters(ALPHA, BETA, GAMMA, seasonality=lengths[0] if lengths else 1)

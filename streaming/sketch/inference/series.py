"""A series of means, one for each step of time, and what models are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

State = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class MeanSeries:
    """The mean of a feature in T steps of time.

    Parameters
    ----------
    start_us : ndarray of int64, shape (T,)
        When each step begins, in microseconds since 1970 UTC: ascending multiples of `every_us`. Steps without values
        are left out.
    mean : ndarray of float64, shape (T,)
    every_us : int
        The length of a step.
    """

    start_us: np.ndarray
    mean: np.ndarray
    every_us: int

    def __len__(self) -> int:
        return len(self.start_us)

    def together(self, other: "MeanSeries") -> "MeanSeries":
        """Return the steps of both; where both have a step, that of `other`."""
        start_us = np.concatenate([other.start_us, self.start_us])
        kept, first = np.unique(start_us, return_index=True)
        return MeanSeries(kept, np.concatenate([other.mean, self.mean])[first], self.every_us)


class Model(Protocol):
    """A model that forecasts a series. It has no state of its own, so that one model serves all series.

    The state of a series is data: arrays by name, which are stored, split and merged like any other. A model is a pure
    function of the steps that it has learnt, in their order; where they were cut into several calls does not matter.
    Other packages offer models by entry points of the group `lookout.models`.
    """

    def begin(self, every_us: int) -> State:
        """Return the state before the first step of a series, whose steps have a length in microseconds."""

    def learn_many(self, state: State, steps: MeanSeries) -> State:
        """Return the state after some more steps, all later than those that are learnt."""

    def predict(self, state: State, horizon: int, confidence: float) -> np.ndarray:
        """Return a forecast of the `horizon` steps that follow the last one.

        Returns
        -------
        ndarray of float64, shape (horizon, 3)
            The value of each step, its lower bound and its upper bound: the step's mean lies between them with the
            probability `confidence`. NaN, and infinite bounds, as long as too few steps are learnt.
        """


def unknown(horizon: int) -> np.ndarray:
    """Return the forecast of a model that has learnt too few steps."""
    return np.tile([np.nan, -np.inf, np.inf], (horizon, 1))

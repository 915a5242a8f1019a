"""Levels of accuracy: how coarsely the leaves of a time are kept.

Level by level, neighbouring bins of the planes are merged, and cells by two bits, until one record a time bin is left;
further levels double the time bins. The keys of a level are made of those of any lower one, so it does not matter when
leaves become coarser, nor in how many steps.

In the gradient mode what is older than the length of study, against the newest element, has level 1; after twice that
time level 2, after four times level 3. A time bin of a level must be old enough as a whole. So a level has twice as
many elements as the one before, with a quarter of the cells and half of the bins, and memory stays flat. In the equal
mode all times have the same level. Either way, the memory budget may add levels for all times (`coarseness`).

References
----------
Synopsis (2017), section 3.1.3.
"""

from dataclasses import dataclass

import numpy as np

from streaming.sketch.settings import SketchSettings

# Time bins become no longer than this many times the first ones.
MOST_DOUBLINGS = 20


@dataclass(frozen=True)
class LeafLevels:
    """The level of each time, for the time of the newest element and the coarseness.

    Parameters
    ----------
    settings : SketchSettings
    newest_us : int
    coarseness : int
        The least level.
    """

    settings: SketchSettings
    newest_us: int
    coarseness: int = 0

    def of(self, time_us: np.ndarray) -> np.ndarray:
        """Return the level of times, int64 of shape (N,)."""
        level = np.full(len(time_us), self.coarseness, dtype=np.int64)
        study_us = self.settings.study_us
        if study_us is None or not len(time_us):
            return level
        age_us, least_us = study_us, int(time_us.min())
        # Levels change only when the newest element is in another time bin.
        newest_us = self.newest_us // self.settings.time_bin_us * self.settings.time_bin_us
        older = self.coarseness + 1
        while newest_us - least_us >= age_us and older <= self.most:
            length = bin_us(self.settings, older)
            end = (time_us // length + 1) * length
            level[end <= newest_us - age_us] = older
            older, age_us = older + 1, 2 * age_us
        return level

    @property
    def most(self) -> int:
        """The highest level."""
        return self.settings.last_spatial_level + MOST_DOUBLINGS


def bin_us(settings: SketchSettings, level: int) -> int:
    """Return the length of a time bin of a level, in microseconds."""
    return settings.time_bin_us << min(max(level - settings.last_spatial_level, 0), MOST_DOUBLINGS)


def starts_of(settings: SketchSettings, time_us: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return where the time bins begin in which times lie, int64 of shape (N,), in microseconds."""
    doubled = np.clip(level - settings.last_spatial_level, 0, MOST_DOUBLINGS)
    length = np.int64(settings.time_bin_us) << doubled
    return time_us // length * length


def bits_of(settings: SketchSettings, level: np.ndarray) -> np.ndarray:
    """Return how many bits the cells of levels have, int64 of shape (N,)."""
    return np.maximum(settings.cell_bits - 2 * level, 0)

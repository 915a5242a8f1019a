"""Which pages of a layer a region keeps in memory: those that meet its cell, enlarged by a padding.

The answer never depends on it: an element that comes near a page that is not in memory has it read.

References
----------
BBoxDB Streams (2022), section 4.6: the strategies FETCH, STATIC and DYNAMIC.
"""

import functools
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streaming.kinds.parts import Enlargement
from streaming.operators.boxes import intersects, transformed
from streaming.operators.layer import LayerVersion
from streaming.operators.metres import within_reach
from streaming.spaces import Space

logger = logging.getLogger(__name__)

FETCH, STATIC, DYNAMIC = "fetch", "static", "dynamic"


class LayerReach(NamedTuple):
    """How far the elements of a join reach for the features of a layer.

    Parameters
    ----------
    layer : str
    transform : tuple of Enlargement
    distance : float
        From the transformed box; infinite if each feature may be a partner.
    """

    layer: str
    transform: tuple[Enlargement, ...] = ()
    distance: float = 0.0

    def of(self, boxes: np.ndarray, space: Space) -> np.ndarray:
        """Return a box around what elements in each of some boxes (N, 2n) reach."""
        if math.isinf(self.distance):
            return np.tile(space.whole(), (len(boxes), 1))
        grown, n = transformed(boxes, self.transform, space), space.n  # a factor below 1 makes them smaller
        boxes = np.hstack([np.minimum(boxes[:, :n], grown[:, :n]), np.maximum(boxes[:, n:], grown[:, n:])])
        return within_reach(boxes, self.distance, space) if self.distance else boxes


@dataclass(frozen=True)
class Padding:
    """By how much a region's cell is enlarged.

    Parameters
    ----------
    strategy : {"fetch", "static", "dynamic"}
        ``fetch``: the region keeps no pages, and reads those that its elements need; ``static``: the padding is `size`;
        ``dynamic``: it is as far as the registered joins reach.
    size : float
        In metres in a space with longitude and latitude, elsewhere in the unit of the first dimension.
    """

    strategy: str = DYNAMIC
    size: float = 0.0

    def kept(self, layer: LayerVersion, cell: np.ndarray, reaches: Iterable[LayerReach]) -> np.ndarray:
        """Return which pages of a layer a region keeps.

        Parameters
        ----------
        layer : LayerVersion
        cell : ndarray of float64, shape (2n,)
            The part of the space that is the region's.
        reaches : iterable of LayerReach
            Of the joins with the layer.

        Returns
        -------
        ndarray of bool, shape (P,)
        """
        space, cell = layer.space, cell[None]
        boxes = {
            FETCH: lambda: np.empty((0, 2 * space.n)),
            STATIC: lambda: self._static(cell, reaches, space),
            DYNAMIC: lambda: np.concatenate(
                [np.empty((0, 2 * space.n)), *(reach.of(cell, space) for reach in reaches)]
            ),
        }[self.strategy]()
        pages = np.arange(len(layer.boxes))
        box, page = (index.ravel() for index in np.indices((len(boxes), len(pages))))
        kept = np.zeros(len(pages), dtype=bool)
        kept[page[intersects(boxes, box, layer.boxes.bounds, page, space)]] = True
        return kept

    def _static(self, cell: np.ndarray, reaches: Iterable[LayerReach], space: Space) -> np.ndarray:
        """Return the enlarged cell, as the only box; log the joins that reach farther."""
        n, padded = space.n, within_reach(cell, self.size, space)
        for reach in reaches:
            box = reach.of(cell, space)
            if (box[:, :n] < padded[:, :n]).any() or (box[:, n:] > padded[:, n:]).any():
                _log_once(reach, self.size)
        return padded


@functools.lru_cache(maxsize=1024)
def _log_once(reach: LayerReach, size: float) -> None:
    logger.warning(
        "a join with the layer %s should not reach farther than LOOKOUT_PADDING_SIZE=%g; got a distance of %g after %s:"
        " what it needs beyond is read when an element needs it",
        reach.layer,
        size,
        reach.distance,
        [f"{step.by} {step.amount:g}" for step in reach.transform] or "no transformation",
    )

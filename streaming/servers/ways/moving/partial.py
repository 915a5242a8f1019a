"""What a participating server sends to the assembler, and what the assembler tells it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
import polars as pl

from streaming.operators.runs import find
from streaming.servers.control.step import ControlStep
from streaming.servers.ways.moving.focals import Focals
from streaming.servers.ways.moving.placement import Placement


@dataclass(frozen=True)
class Candidates:
    """Objects in search regions: query, object (its `key_hash`), both int64, and distance, float64; of shape (P,)."""

    query: np.ndarray
    key: np.ndarray
    distance: np.ndarray

    @classmethod
    def none(cls) -> "Candidates":
        """Return no candidates."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))

    @classmethod
    def together(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Return the candidates of all parts, one part after the other."""
        return cls(*(np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(cls)))

    def __len__(self) -> int:
        return len(self.key)

    def take(self, rows: np.ndarray) -> "Candidates":
        """Return the candidates at `rows`, positions or a mask."""
        return Candidates(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True)
class Partial:
    """What a participating server sends to the assembler in one micro-batch.

    Parameters
    ----------
    removed, added : Candidates
        `removed` has the touched objects that were in a search region, unless it shifted. `added` has the touched
        objects that are in a search region, and all objects in a search region that shifted.
    moved : ndarray of bool
        Which of `added` are touched: they moved or appeared.
    altered : ndarray of int64
        Aggregates whose members in this region may have changed, ascending.
    parts : polars.DataFrame
        All parts of these aggregates, with the columns `aggregates.PARTS`.
    lacking : ndarray of int64
        Queries that the region leaves out, so that their answers lack its part; ascending.
    renewed : ndarray of int64
        The `key_hash` of the touched objects among those that `parts` names, ascending.
    """

    removed: Candidates
    added: Candidates
    moved: np.ndarray
    altered: np.ndarray
    parts: pl.DataFrame
    lacking: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    renewed: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def only(self, queries: np.ndarray) -> "Partial":
        """Return what is sent for some queries alone; `queries` are ascending."""
        removed, added = (find(queries, part.query)[1] for part in (self.removed, self.added))
        altered = find(queries, self.altered)[1]
        if removed.all() and added.all() and altered.all():
            return self
        return Partial(
            self.removed.take(removed),
            self.added.take(added),
            self.moved[added],
            self.altered[altered],
            self.parts.filter(pl.col("query").is_in(self.altered[altered].tolist())),
            self.lacking,
            self.renewed,
        )


@dataclass(frozen=True)
class Tracks:
    """The focal objects in a micro-batch, and what the assembler needs; the same for all servers.

    Parameters
    ----------
    before, after : Focals
        The focal objects without and with a micro-batch.
    lost : dict of int to int
        By `key_hash`, why some were lost; see `Focals.followed`.
    heard : ndarray of int64
        The `key_hash` of each that sent an element in this batch.
    wanting : frozenset of int
        The queries that the assembler left out in the batch before: it needs all parts of their answers.
    """

    before: Focals
    after: Focals
    lost: dict[int, int]
    heard: np.ndarray
    wanting: frozenset[int] = frozenset()
    _placements: list[Placement] = field(default_factory=list, compare=False)

    def placement(self, control: ControlStep) -> Placement:
        """Return the queries of a control step, placed before and now; the regions of a process share it."""
        for placement in self._placements:
            if placement.serves(control):
                return placement
        self._placements.append(Placement(self.before, self.after, control))
        return self._placements[-1]

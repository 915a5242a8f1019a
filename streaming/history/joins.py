"""Joins of two tables of rows: the pairs for which a predicate holds, found in pieces of a bounded size."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import bounds_of
from streaming.errors import InvalidPlan
from streaming.history.errors import InvalidQuestion
from streaming.history.found import FoundRows, RowLimits, Sizes, row_bytes
from streaming.history.rows import row_schema
from streaming.kinds.join.kind import JoinKind
from streaming.kinds.join.plan import JoinPlan
from streaming.language import thousands
from streaming.operators.comparison import Comparison
from streaming.operators.elements import Elements
from streaming.operators.features import Features
from streaming.spaces import Space

# A piece of a join compares this many pairs at most, or one row of the left table with all that may be near.
PIECE_PAIRS = 32_768
# The most pairs that a join may compare by `disjoint`, which compares every row with every other.
DISJOINT_PAIRS = 50_000_000


@dataclass(frozen=True)
class RowJoin:
    """A join of two tables.

    Parameters
    ----------
    plan : JoinPlan
        See `join_plan`.
    space : Space
    alike : bool
        Whether a table is joined with itself: then rows with the same key are no pair.
    limits : RowLimits
        Of the pairs.
    turn : callable
        Called before each piece, with the number of rows of the left table in it. It may raise an error to end the
        join.
    """

    plan: JoinPlan
    space: Space
    alike: bool
    limits: RowLimits
    turn: Callable[[int], None]

    def found(self, rows: pa.Table, partners: pa.Table) -> FoundRows:
        """Return the pairs, with `joined_schema`: the first by the order of the rows, then of the partners.

        Raises
        ------
        InvalidQuestion
            When a join by ``disjoint`` compares too many pairs.
        """
        self._check_disjoint(rows.num_rows, partners.num_rows)
        comparison = Comparison(self.plan, self.space, _as_features(partners, self.space))
        elements, size, partner_size = _as_elements(rows, self.space), row_bytes(rows), row_bytes(partners)
        found, sizes = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))], Sizes()
        for piece in comparison.pieces(elements, np.arange(rows.num_rows), PIECE_PAIRS):
            self.turn(len(piece))
            at, partner, distance = self._pairs(comparison, elements, piece, rows, partners)
            found.append((at, partner, distance))
            sizes.take(size[at] + partner_size[partner])
            if sizes.exceed(self.limits):
                break
        at, partner, distance = map(np.concatenate, zip(*found, strict=True))
        fitting = self.limits.fitting(size[at] + partner_size[partner])
        first = slice(0, fitting)
        return FoundRows(_joined(rows, at[first], partners, partner[first], distance[first]), fitting < len(at))

    def _check_disjoint(self, rows: int, partners: int) -> None:
        if self.plan.partners.predicate == "disjoint" and rows * partners > DISJOINT_PAIRS:
            raise InvalidQuestion(
                "a join by disjoint must compare at most %(disjoint_pairs)s pairs; got %(elements)s by %(partners)s",
                disjoint_pairs=thousands(DISJOINT_PAIRS),
                elements=thousands(rows),
                partners=thousands(partners),
            )

    def _pairs(
        self, comparison: Comparison, elements: Elements, piece: np.ndarray, rows: pa.Table, partners: pa.Table
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the pairs of a piece as rows and partners in order, and their distances."""
        at, partner, distance = comparison.measured(elements, piece)
        order = np.lexsort((partner, at))
        at, partner, distance = piece[at[order]], partner[order], distance[order]
        if self.alike:
            other = pc.not_equal(rows["key"].take(pa.array(at)), partners["key"].take(pa.array(partner)))
            at, partner, distance = (side[np.asarray(other, dtype=bool)] for side in (at, partner, distance))
        return at, partner, distance


def joined_schema(space: Space) -> pa.Schema:
    """Return the columns of a join's rows: those of the left table, of the right one as partner_..., and distance.

    `distance` is float64, and null unless the predicate is ``dwithin``.
    """
    left = row_schema(space)
    right = [field.with_name(f"partner_{field.name}") for field in left]
    return pa.schema([*left, *right, pa.field("distance", pa.float64())])


def join_plan(predicate: Any, distance: Any, space: Space) -> JoinPlan:
    """Return the plan of a continuous join with this predicate and distance, to compare rows in the same way.

    Raises
    ------
    InvalidQuestion
        When one of them is invalid.
    """
    given = {"predicate": predicate, "distance": distance}
    join = {"layer": "partners"} | {name: value for name, value in given.items() if value is not None}
    try:
        return JoinKind().parse({"stream": "rows", "kind": "join", "join": join}, space)
    except InvalidPlan as error:
        raise InvalidQuestion.of(error) from None


def boxes_of(rows: pa.Table, space: Space) -> np.ndarray:
    """Return the boxes of rows, float64 of shape (N, 2n)."""
    return bounds_of(rows["bounds"]) if rows.num_rows else np.empty((0, 2 * space.n))


def _as_elements(rows: pa.Table, space: Space) -> Elements:
    return Elements(
        np.zeros(rows.num_rows, dtype=np.int64),
        boxes_of(rows, space),
        lambda wanted: rows.take(pa.array(wanted)),
        rows["geometry"].null_count < rows.num_rows,
    )


def _as_features(rows: pa.Table, space: Space) -> Features:
    """Return rows as the features that elements are joined with, in the same order."""
    return Features(rows.append_column("key_hash", pa.array(np.arange(rows.num_rows))), space)


def _joined(rows: pa.Table, at: np.ndarray, partners: pa.Table, partner: np.ndarray, distance: np.ndarray) -> pa.Table:
    mine, others = rows.take(pa.array(at)), partners.take(pa.array(partner))
    columns = {name: mine[name] for name in mine.column_names}
    columns |= {f"partner_{name}": others[name] for name in others.column_names}
    return pa.table(columns | {"distance": pa.array(distance, pa.float64(), from_pandas=True)})

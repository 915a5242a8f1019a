"""Questions to layers and to the stored elements of streams: by key, by box, and by a join.

References
----------
BBoxDB Streams (2022), sections 2.1.2 and 3.2: the operations get, queryByRect and join.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import bounds_of
from streaming.errors import InvalidPlan
from streaming.history.errors import InvalidQuestion
from streaming.history.reader import EVER, History, Span, asked
from streaming.history.rows import meets, row_schema, within
from streaming.kinds.join.kind import JoinKind
from streaming.kinds.join.plan import JoinPlan
from streaming.language import thousands
from streaming.layers import LayerStore
from streaming.operators.boxes import intersects
from streaming.operators.comparison import Comparison
from streaming.operators.elements import Elements
from streaming.operators.features import Features
from streaming.spaces import EARTH, Space

SOURCES = ("layer", "stored")
BY_KEY, BY_TIME = ("key", "time_us"), ("time_us", "key")
# A join compares this many rows of the left table at a time.
CHUNK = 8_192
# The most pairs that a join may compare by `disjoint`, which compares every row with every other.
DISJOINT_PAIRS = 50_000_000


@dataclass(frozen=True)
class Table:
    """A stored table: the newest version of a layer, or the stored elements of a stream.

    Parameters
    ----------
    source : {"layer", "stored"}
    name : str
        The name of the layer or stream.
    """

    source: str
    name: str


def layer(name: str) -> Table:
    """Return the table of a layer."""
    return Table("layer", name)


def stored(stream: str) -> Table:
    """Return the table of a stream's stored elements."""
    return Table("stored", stream)


@dataclass(frozen=True)
class FoundRows:
    """The answer to a question.

    Parameters
    ----------
    rows : pyarrow.Table
        With `rows.row_schema`, for a join with `joined_schema`. Ordered by key, then time.
    truncated : bool
        Whether there are more rows than the limit.
    """

    rows: pa.Table
    truncated: bool


def joined_schema(space: Space) -> pa.Schema:
    """Return the columns of a join's rows: those of the left table, of the right one as partner_..., and distance.

    `distance` is float64, and null unless the predicate is ``dwithin``.
    """
    left = row_schema(space)
    right = [field.with_name(f"partner_{field.name}") for field in left]
    return pa.schema([*left, *right, pa.field("distance", pa.float64())])


def no_limit(rows: int) -> None:
    """Do nothing, so that a question may take any time: the default `turn` of `StoredTables`."""


class StoredTables:
    """The tables of a space: its layers, and the stored elements of its streams.

    Parameters
    ----------
    layers, history : Path
        The folders of the layers and of the history.
    space : Space
    most_rows : int, optional
        The most rows of one table that a join may compare; a join with more is refused. By default, there is no limit.
    turn : callable
        Called repeatedly while a question is answered, with the number of rows read since the last call. It may raise
        an error to end the question.

    Examples
    --------
    >>> tables = StoredTables(Path("nowhere/layers"), Path("nowhere/history"))
    >>> tables.get(stored("buses"), "bus 7").rows.num_rows
    0
    """

    def __init__(
        self,
        layers: Path,
        history: Path,
        space: Space = EARTH,
        most_rows: int | None = None,
        turn: Callable[[int], None] = no_limit,
    ) -> None:
        self.space, self.most_rows, self.turn = space, most_rows, turn
        self.layers, self.history = LayerStore(layers), History(history, space)

    def get(self, table: Table, key: str, limit: int | None = None) -> FoundRows:
        """Return the rows with a key, in the order of time; if there are more than the limit, the newest.

        Parameters
        ----------
        table : Table
        key : str
        limit : int, optional
            The most rows to return.

        Returns
        -------
        FoundRows

        Raises
        ------
        InvalidQuestion
            When there is no such layer.
        """
        if table.source == "layer":
            rows = self._features(table)
            return _cut([rows.filter(pc.equal(rows["key"], key))], limit)
        return self._stored(table, pc.field("key") == key, EVER, _Collected(self.space, limit, BY_KEY, True), few=True)

    def query_by_box(
        self, table: Table, box: np.ndarray | None = None, span: Span = EVER, limit: int | None = None
    ) -> FoundRows:
        """Return the rows whose own boxes intersect a box.

        Parameters
        ----------
        table : Table
        box : ndarray of float64, shape (2n,), optional
            See `spaces.Space.box`; by default, the whole space.
        span : (int or None, int or None)
            Event times in microseconds since 1970 UTC, both ends included; None leaves an end open. The features of
            layers have no time, and match every span.
        limit : int, optional
            The most rows to return: the first by key and time.

        Returns
        -------
        FoundRows

        Raises
        ------
        InvalidQuestion
            When there is no such layer.
        """
        box = self.space.whole() if box is None else np.asarray(box, dtype=np.float64)
        if table.source == "layer":
            return _cut([self._inside(self._features(table), box)], limit)
        collected = _Collected(self.space, limit, BY_KEY)
        return self._stored(table, meets(box, self.space) & within(span), span, collected, box)

    def newest(self, table: Table, limit: int) -> FoundRows:
        """Return at most `limit` newest stored elements of a stream, in the order of time, then key."""
        return self._stored(table, pc.scalar(True), EVER, _Collected(self.space, limit, BY_TIME, True))

    def join(
        self,
        left: Table,
        right: Table,
        box: np.ndarray | None = None,
        span: Span = EVER,
        predicate: str = "intersects",
        distance: float | None = None,
        limit: int | None = None,
    ) -> FoundRows:
        """Return the pairs of rows of two tables for which a predicate holds, as in continuous joins.

        Parameters
        ----------
        left, right : Table
            In a join of a table with itself, rows with the same key are no pair.
        box, span
            As in `query_by_box`; both rows of a pair must match them.
        predicate : str
            One of `plans.PREDICATES`: the relation of the left row to the right one.
        distance : float, optional
            The distance of the predicate ``dwithin``.
        limit : int, optional
            The most pairs to return: the first by key and time of the left row, then of the right row.

        Returns
        -------
        FoundRows

        Raises
        ------
        InvalidQuestion
            When the predicate or its distance is invalid, there is no such layer, or a table has too many rows in the
            box and the span.
        """
        plan = _plan(predicate, distance, self.space)
        rows, partners = (self.query_by_box(table, box, span, self._most()).rows for table in (left, right))
        for table, found in ((left, rows), (right, partners)):
            self._check_size(table, found.num_rows)
        if predicate == "disjoint" and rows.num_rows * partners.num_rows > DISJOINT_PAIRS:
            raise InvalidQuestion(
                "a join by disjoint must compare at most %(disjoint_pairs)s pairs; got %(num_rows)s by %(num_rows_2)s",
                disjoint_pairs=thousands(DISJOINT_PAIRS),
                num_rows=thousands(rows.num_rows),
                num_rows_2=thousands(partners.num_rows),
            )
        comparison = Comparison(plan, self.space, _as_features(partners, self.space))
        elements = Elements(
            np.zeros(rows.num_rows, dtype=np.int64),
            _boxes(rows, self.space),
            lambda wanted: rows.take(pa.array(wanted)),
            rows["geometry"].null_count < rows.num_rows,
        )
        return self._pairs(comparison, elements, rows, partners, left == right, limit)

    def _pairs(
        self,
        comparison: Comparison,
        elements: Elements,
        rows: pa.Table,
        partners: pa.Table,
        alike: bool,
        limit: int | None,
    ) -> FoundRows:
        """Compare a chunk of rows at a time, until there are enough pairs for the limit."""
        found, count = [joined_schema(self.space).empty_table()], 0
        for start in range(0, rows.num_rows, CHUNK):
            chunk = np.arange(start, min(start + CHUNK, rows.num_rows))
            self.turn(len(chunk))
            at, partner, distance = comparison.measured(elements, chunk)
            at = chunk[at]
            order = np.lexsort((partner, at))
            at, partner, distance = at[order], partner[order], distance[order]
            if alike:
                other = pc.not_equal(rows["key"].take(pa.array(at)), partners["key"].take(pa.array(partner)))
                at, partner, distance = (side[np.asarray(other, dtype=bool)] for side in (at, partner, distance))
            if limit is not None:
                at, partner, distance = (side[: limit + 1 - count] for side in (at, partner, distance))
            found.append(_joined(rows.take(pa.array(at)), partners.take(pa.array(partner)), distance))
            count += len(at)
            if limit is not None and count > limit:
                break
        table = pa.concat_tables(found)
        return FoundRows(table if limit is None else table.slice(0, limit), limit is not None and count > limit)

    def _most(self) -> int | None:
        return None if self.most_rows is None else self.most_rows + 1

    def _check_size(self, table: Table, rows: int) -> None:
        if self.most_rows is not None and rows > self.most_rows:
            raise InvalidQuestion(
                "a join must compare at most %(most_rows)s rows of a table: give a smaller box or "
                "span; got more of the %(source)s %(name)s",
                most_rows=thousands(self.most_rows),
                source=table.source,
                name=repr(table.name),
            )

    def _stored(
        self,
        table: Table,
        condition: pc.Expression,
        span: Span,
        collected: "_Collected",
        box: np.ndarray | None = None,
        few: bool = False,
    ) -> FoundRows:
        def take(rows: pa.Table) -> None:
            self.turn(rows.num_rows)
            collected.take(rows if box is None else self._inside(rows, box))

        def ask() -> FoundRows:
            collected.begin()
            self.history.collect(table.name, condition, span, take, few)
            return collected.found()

        return asked(ask)

    def _features(self, table: Table) -> pa.Table:
        version = self.layers.newest(table.name)
        if version is None:
            raise InvalidQuestion("layer must be the name of a layer; got %(name)s", name=repr(table.name))
        return _layer_rows(self.layers.root, table.name, version, self.space)

    def _inside(self, rows: pa.Table, box: np.ndarray) -> pa.Table:
        at = np.arange(rows.num_rows)
        mask = intersects(_boxes(rows, self.space), at, box[None], np.zeros_like(at), self.space)
        return rows if mask.all() else rows.filter(pa.array(mask))


@functools.lru_cache(maxsize=4)
def _layer_rows(root: Path, name: str, version: int, space: Space) -> pa.Table:
    """Return the features of a layer's version with `rows.row_schema`."""
    features = LayerStore(root).read(name, version, space)
    schema = row_schema(space)
    columns = {field: features[field] for field in ("key", "bounds", "geometry", "properties")}
    columns["time_us"] = pa.nulls(features.num_rows, pa.int64())
    return pa.table([columns[field] for field in schema.names], schema=schema)


class _Collected:
    """Collects the first rows in an order, or the last, up to a limit, and whether there were more."""

    def __init__(self, space: Space, limit: int | None, order: Sequence[str], last: bool = False) -> None:
        self._limit, self._order, self._last = limit, order, last
        self._none = row_schema(space).empty_table()

    def begin(self) -> None:
        """Forget all rows, to begin again."""
        self._tables, self._rows, self._more = [self._none], 0, False

    def take(self, rows: pa.Table) -> None:
        """Add rows; drop those beyond the limit now and then, to save memory."""
        self._tables.append(rows)
        self._rows += rows.num_rows
        if self._limit is not None and self._rows > max(4 * self._limit, 65_536):
            found = self.found()
            self._tables, self._rows, self._more = [found.rows], found.rows.num_rows, found.truncated

    def found(self) -> FoundRows:
        """Return the collected rows, in order and cut to the limit."""
        found = _cut(self._tables, self._limit, self._order, self._last)
        return replace(found, truncated=found.truncated or self._more)


def _cut(tables: Sequence[pa.Table], limit: int | None, order: Sequence[str] = BY_KEY, last: bool = False) -> FoundRows:
    """Return rows in order, cut to the limit."""
    rows = pa.concat_tables(tables)
    rows = rows.sort_by([(name, "ascending") for name in order])
    if limit is None or rows.num_rows <= limit:
        return FoundRows(rows, False)
    return FoundRows(rows.slice(rows.num_rows - limit) if last else rows.slice(0, limit), True)


def _boxes(rows: pa.Table, space: Space) -> np.ndarray:
    return bounds_of(rows["bounds"]) if rows.num_rows else np.empty((0, 2 * space.n))


def _plan(predicate: Any, distance: Any, space: Space) -> JoinPlan:
    """Return the plan of a continuous join with this predicate and distance, to compare rows in the same way."""
    given = {"predicate": predicate, "distance": distance}
    join = {"layer": "partners"} | {name: value for name, value in given.items() if value is not None}
    try:
        return JoinKind().parse({"stream": "rows", "kind": "join", "join": join}, space)
    except InvalidPlan as error:
        raise InvalidQuestion.of(error) from None


def _as_features(rows: pa.Table, space: Space) -> Features:
    """Return rows as the features that elements are joined with, in the same order."""
    return Features(rows.append_column("key_hash", pa.array(np.arange(rows.num_rows))), space)


def _joined(rows: pa.Table, partners: pa.Table, distance: np.ndarray) -> pa.Table:
    columns = {name: rows[name] for name in rows.column_names}
    columns |= {f"partner_{name}": partners[name] for name in partners.column_names}
    return pa.table(columns | {"distance": pa.array(distance, pa.float64(), from_pandas=True)})


def parse_table(document: Any) -> Table:
    """Return the table that a JSON object ``{"layer": name}`` or ``{"stored": stream}`` names.

    Raises
    ------
    InvalidQuestion
        When the document is no such object.
    """
    if isinstance(document, dict) and len(document) == 1:
        ((source, name),) = document.items()
        if source in SOURCES and isinstance(name, str) and name:
            return Table(source, name)
    raise InvalidQuestion(
        'a table must be {"layer": name} or {"stored": stream}; got %(document)s', document=f"{document!r:.80}"
    )

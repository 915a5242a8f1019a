"""Questions to layers and to the stored elements of streams: by key, by box, and by a join.

References
----------
BBoxDB Streams (2022), sections 2.1.2 and 3.2: the operations get, queryByRect and join.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.history.errors import InvalidQuestion
from streaming.history.found import BY_KEY, BY_TIME, Collected, FoundRows, RowLimits, cut
from streaming.history.joins import RowJoin, boxes_of, join_plan
from streaming.history.reader import EVER, History, Span, asked
from streaming.history.rows import meets, row_schema, within
from streaming.language import thousands
from streaming.layers import LayerStore
from streaming.operators.boxes import intersects
from streaming.spaces import EARTH, Space

SOURCES = ("layer", "stored")


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
    most_bytes : int, optional
        The most bytes of keys, geometries and properties: of an answer, which is cut, and of one table that a join
        compares, which is refused.
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
        most_bytes: int | None = None,
        turn: Callable[[int], None] = no_limit,
    ) -> None:
        self.space, self.turn = space, turn
        self.most_rows, self.most_bytes = most_rows, most_bytes
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
            return cut([rows.filter(pc.equal(rows["key"], key))], self._limits(limit))
        return self._stored(
            table, pc.field("key") == key, EVER, Collected(self.space, self._limits(limit), BY_KEY, True), few=True
        )

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
            return cut([self._inside(self._features(table), box)], self._limits(limit))
        collected = Collected(self.space, self._limits(limit))
        return self._stored(table, meets(box, self.space) & within(span), span, collected, box)

    def newest(self, table: Table, limit: int) -> FoundRows:
        """Return at most `limit` newest stored elements of a stream, in the order of time, then key."""
        return self._stored(table, pc.scalar(True), EVER, Collected(self.space, self._limits(limit), BY_TIME, True))

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
        plan = join_plan(predicate, distance, self.space)
        rows, partners = (self._compared(table, box, span) for table in (left, right))
        join = RowJoin(plan, self.space, left == right, self._limits(limit), self.turn)
        return join.found(rows, partners)

    def _limits(self, rows: int | None) -> RowLimits:
        return RowLimits(rows, self.most_bytes)

    def _compared(self, table: Table, box: np.ndarray | None, span: Span) -> pa.Table:
        """Return the rows of a table that a join compares; raise InvalidQuestion if there are too many."""
        found = self.query_by_box(table, box, span, self.most_rows)
        if found.truncated:
            named = {"source": table.source, "name": repr(table.name)}
            if self.most_rows is not None and found.rows.num_rows == self.most_rows:
                raise InvalidQuestion(
                    "a join must compare at most %(most_rows)s rows of a table: give a smaller box or "
                    "span; got more of the %(source)s %(name)s",
                    most_rows=thousands(self.most_rows),
                    **named,
                )
            raise InvalidQuestion(
                "a join must compare at most %(most_bytes)s bytes of a table: give a smaller box or "
                "span; got more of the %(source)s %(name)s",
                most_bytes=thousands(self.most_bytes or 0),
                **named,
            )
        return found.rows

    def _stored(
        self,
        table: Table,
        condition: pc.Expression,
        span: Span,
        collected: Collected,
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
        mask = intersects(boxes_of(rows, self.space), at, box[None], np.zeros_like(at), self.space)
        return rows if mask.all() else rows.filter(pa.array(mask))


@functools.lru_cache(maxsize=4)
def _layer_rows(root: Path, name: str, version: int, space: Space) -> pa.Table:
    """Return the features of a layer's version with `rows.row_schema`."""
    features = LayerStore(root).read(name, version, space)
    schema = row_schema(space)
    columns = {field: features[field] for field in ("key", "bounds", "geometry", "properties")}
    columns["time_us"] = pa.nulls(features.num_rows, pa.int64())
    return pa.table([columns[field] for field in schema.names], schema=schema)


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

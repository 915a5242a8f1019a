"""Answers to questions to tables, as JSON; a child process makes them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import shapely

from streaming.elements import bounds_of
from streaming.history.errors import InvalidQuestion
from streaming.history.found import FoundRows, RowLimits, row_bytes
from streaming.history.tables import StoredTables, Table
from streaming.spaces import Space

PARTNER = ("key", "time", "geometry", "properties")


@dataclass(frozen=True)
class HistoryQuestion:
    """A question to tables that was checked against the database.

    Parameters
    ----------
    kind : {"table.get", "table.query", "table.join"}
    space : Space
    tables : tuple of Table
        One table, or the two of a join.
    fields : dict
        The other arguments of the method of `StoredTables`.
    """

    kind: str
    space: Space
    tables: tuple[Table, ...]
    fields: dict[str, Any]


@dataclass(frozen=True)
class AnswerLimits:
    """How much an answer may take.

    Parameters
    ----------
    rows, bytes : int
        Of each table that a join compares.
    answer_bytes : int
        Of texts and geometries of the answer.
    seconds : float
    """

    rows: int
    bytes: int
    answer_bytes: int
    seconds: float


def answered(asked: HistoryQuestion, layers: Path, history: Path, limits: AnswerLimits) -> tuple[bytes, bool]:
    """Return the rows that answer a question, as a list in JSON, and whether there are more.

    Raises
    ------
    InvalidQuestion
        When the question is not valid, or takes too much time or too many rows.
    """
    deadline_s = time.monotonic() + limits.seconds

    def turn(_: int) -> None:
        if time.monotonic() > deadline_s:
            raise InvalidQuestion(
                "a question must be answered within %(table_answer_s)g s: give a smaller box or span; "
                "got one that takes longer",
                table_answer_s=limits.seconds,
            )

    tables = StoredTables(layers, history, asked.space, limits.rows, limits.bytes, turn)
    methods: dict[str, Callable[..., FoundRows]] = {
        "table.get": tables.get,
        "table.query": tables.query_by_box,
        "table.join": tables.join,
    }
    return rows_as_json(methods[asked.kind](*asked.tables, **asked.fields), asked.space, limits.answer_bytes)


def rows_as_json(found: FoundRows, space: Space, most_bytes: int) -> tuple[bytes, bool]:
    """Return rows as `answered` does, one at least; they are cut where texts and geometries exceed `most_bytes`."""
    rows = found.rows.slice(0, RowLimits(bytes=most_bytes).fitting(row_bytes(found.rows)))
    documents = _documents(rows, "", space)
    if "distance" in rows.column_names:
        distances = rows["distance"].to_pylist()
        for document, partner, distance in zip(documents, _documents(rows, "partner_", space), distances, strict=True):
            document["partner"] = {name: partner[name] for name in PARTNER} | {"distance": distance}
    return orjson.dumps(documents), found.truncated or rows.num_rows < found.rows.num_rows


def _documents(rows: pa.Table, prefix: str, space: Space) -> list[dict[str, Any]]:
    """Return rows as dicts for `orjson`, which writes infinite bounds as null."""
    columns = {name: rows[prefix + name] for name in ("key", "time_us", "geometry", "properties")}
    bounds = bounds_of(rows[f"{prefix}bounds"]) if rows.num_rows else np.empty((0, 2 * space.n))
    shapes = shapely.to_geojson(shapely.from_wkb(columns["geometry"].to_numpy()))
    return [
        {
            "key": key,
            "time": time and f"{time}Z",
            "lo": low,
            "hi": high,
            "geometry": orjson.Fragment(shape) if shape is not None else None,
            "properties": orjson.Fragment(text or "{}"),
        }
        for key, time, low, high, shape, text in zip(
            columns["key"].to_pylist(),
            _instants(columns["time_us"]),
            bounds[:, : space.n].tolist(),
            bounds[:, space.n :].tolist(),
            shapes,
            columns["properties"].to_pylist(),
            strict=True,
        )
    ]


def _instants(times: pa.ChunkedArray) -> list[str | None]:
    if times.null_count == len(times):
        return [None] * len(times)
    return np.datetime_as_string(times.to_numpy().astype("datetime64[us]")).tolist()

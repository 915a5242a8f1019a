"""Result tuples that name no member of an answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_array
from streaming.results import result_schema
from streaming.spaces import Space


def alarm_rows(key_hash: np.ndarray, space: Space) -> pa.Table:
    """Return result tuples that name no object, with an empty key, for alarms of rules about whole answers.

    Parameters
    ----------
    key_hash : ndarray of int64, shape (K,)
    space : Space
    """
    rows = len(key_hash)
    zeros = np.zeros(rows, dtype=np.int64)
    columns = {
        "query": zeros,
        "sign": zeros.astype(np.int8),
        "reason": zeros.astype(np.int8),
        "time_us": zeros,
        "key": pa.array([""] * rows, pa.string()),
        "key_hash": key_hash,
        "properties": texts([{}] * rows),
    }
    return table_of(columns | {"bounds": bounds_array(anywhere(rows, space))}, rows, space)


def anywhere(rows: int, space: Space) -> np.ndarray:
    """Return the bounds of the whole space for each row, float64 of shape (rows, 2n)."""
    return np.tile(space.whole(), (rows, 1))


def texts(properties: Sequence[Mapping[str, Any]]) -> pa.Array:
    """Return properties as result tuples have them: the text of a JSON object."""
    return pa.array([orjson.dumps(value).decode() for value in properties], pa.string())


def table_of(columns: dict[str, Any], rows: int, space: Space) -> pa.Table:
    """Return result tuples; columns that are not given are null, and `partner_hash` is then 0."""
    schema = result_schema(space)
    columns = {"partner_hash": np.zeros(rows, dtype=np.int64)} | columns
    return pa.table([columns.get(field.name, pa.nulls(rows, field.type)) for field in schema], schema=schema)

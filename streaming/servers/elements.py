"""The tables of elements that servers send to each other."""

from functools import lru_cache

import numpy as np
import pyarrow as pa

from streaming.elements import element_schema
from streaming.spaces import Space


@lru_cache(maxsize=64)
def tracked_schema(space: Space) -> pa.Schema:
    """Return the columns of elements that are sent to a region: `element_schema`, `stream` and `heard_us`.

    Both added columns are int64. `stream` is the `elements.stream_number`; `heard_us` is the wall-clock time, in
    microseconds, at which the gateway received the element.
    """
    schema = element_schema(space)
    for name in ("stream", "heard_us"):
        schema = schema.append(pa.field(name, pa.int64(), nullable=False))
    return schema


@lru_cache(maxsize=64)
def belated_schema(space: Space) -> pa.Schema:
    """Return the columns of elements that came too late to change an answer: `tracked_schema` and `late_us`.

    `late_us` (int64) is the wall-clock time, in microseconds, at which the gateway received the element; `heard_us` is
    when it would have received it in its turn.
    """
    return tracked_schema(space).append(pa.field("late_us", pa.int64(), nullable=False))


@lru_cache(maxsize=64)
def no_elements(space: Space) -> pa.Table:
    """Return a table with `tracked_schema` and without rows. Most tables of a batch are this one."""
    return tracked_schema(space).empty_table()


def taken(elements: pa.Table, rows: np.ndarray) -> pa.Table:
    """Return the elements at some positions; fast where these are all or none, unlike pyarrow's own."""
    if len(rows) == elements.num_rows and (rows[1:] > rows[:-1]).all():
        return elements
    return elements.take(rows) if len(rows) else elements.slice(0, 0)

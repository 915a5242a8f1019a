"""Elements that come too late to change an answer: they are stored as if they had come in their turn."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import STORED_ONLY
from streaming.servers.elements import belated_schema
from streaming.spaces import Space


def apart(elements: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the elements that may change answers, and those that are stored only.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.tracked_schema`, in one piece; so are both parts.
    """
    version = elements["version"]
    if pc.min(version).as_py() != STORED_ONLY:
        return elements, elements.slice(0, 0)
    old = pc.equal(version, STORED_ONLY)
    return elements.filter(pc.invert(old)).combine_chunks(), elements.filter(old).combine_chunks()


def in_turn(elements: pa.Table, turn_us: np.ndarray, space: Space) -> pa.Table:
    """Return late elements as if they had been received in their turn.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.tracked_schema`.
    turn_us : ndarray of int64, shape (N,)
        When that would have been, in microseconds since 1970 UTC; at the latest, it is when they were received.

    Returns
    -------
    pyarrow.Table
        With `elements.belated_schema`.
    """
    schema, came = belated_schema(space), elements["heard_us"]
    heard_us = pa.array(np.clip(turn_us, 0, came.to_numpy()))
    place = schema.get_field_index("heard_us")
    return elements.set_column(place, schema.field(place), heard_us).append_column(schema.field("late_us"), came)

"""Elements on their way between servers."""

import pyarrow as pa

from streaming.elements import element_schema
from streaming.spaces import Space


def tracked_schema(space: Space) -> pa.Schema:
    """Return the columns of elements on their way to a region: `element_schema`, `stream` and `heard_us`.

    `stream` is an int64 `elements.stream_number`; `heard_us` the wall-clock time at which the gateway received it.
    """
    schema = element_schema(space)
    for name in ("stream", "heard_us"):
        schema = schema.append(pa.field(name, pa.int64(), nullable=False))
    return schema

"""The schema of elements that servers send to each other."""

import pyarrow as pa

from streaming.elements import element_schema
from streaming.spaces import Space


def tracked_schema(space: Space) -> pa.Schema:
    """Return the columns of elements that are sent to a region: `element_schema`, `stream` and `heard_us`.

    Both added columns are int64. `stream` is the `elements.stream_number`; `heard_us` is the wall-clock time, in
    microseconds, at which the gateway received the element.
    """
    schema = element_schema(space)
    for name in ("stream", "heard_us"):
        schema = schema.append(pa.field(name, pa.int64(), nullable=False))
    return schema

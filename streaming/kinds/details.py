"""Details: columns of result tuples that only the queries of some kinds have, each declared once.

A kind lists its details (`Kind.details`). The schema of result tuples, the rows of JSON frames, and what a joined frame
leaves out follow from that.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from streaming.elements import bounds_document
from streaming.spaces import Space


def of_space(space: Space) -> pa.DataType:
    """Return the type of a box in a space."""
    return pa.list_(pa.float64(), 2 * space.n)


@dataclass(frozen=True)
class Detail:
    """Columns that are null together, and what rows of JSON frames tell of them.

    Parameters
    ----------
    columns : mapping of str to DataType or function
        The types, by name; a function returns the type in a space.
    add : function or None
        Adds the values, one for each column, to a row of a JSON frame, which is a dict; by default under the names of
        the columns. It is called for rows in which the first column has a value.
    """

    columns: Mapping[str, pa.DataType | Callable[[Space], pa.DataType]]
    add: Callable[..., None] | None = None

    def fields(self, space: Space) -> list[pa.Field]:
        """Return the columns of result tuples in a space."""
        return [pa.field(name, kind(space) if callable(kind) else kind) for name, kind in self.columns.items()]

    def told(self, row: dict[str, Any], values: list[Any]) -> None:
        """Add the values of the columns to a row of a JSON frame."""
        if self.add is None:
            row.update(zip(self.columns, values, strict=True))
        else:
            self.add(row, *values)


def _partner(row: dict[str, Any], time_us: int, bounds: list[float]) -> None:
    row["partner"] |= {"time_us": time_us, "bounds": bounds_document(bounds)}


# Of joins over event time, the partner's report; of encounters, the one of which the distance is the least so far.
PARTNER_REPORT = Detail({"partner_time_us": pa.int64(), "partner_bounds": of_space}, _partner)
# When an encounter began; of an alarm about silence, when the object, or the stream, was heard last.
SINCE = Detail({"since_us": pa.int64()})

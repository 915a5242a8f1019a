"""What home servers send to regions."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.servers.elements import taken


@dataclass(frozen=True)
class Routed:
    """Rows of a table that are sent to regions. They are copied once, when the input of a region is made.

    Parameters
    ----------
    table : pyarrow.Table
    rows, region : ndarray of int64, shape (K,)
        Which row is sent, and to which region.
    """

    table: pa.Table
    rows: np.ndarray
    region: np.ndarray

    def to(self, region: int) -> pa.Table:
        """Return the rows for a region, in their order."""
        return taken(self.table, self.rows[self.region == region])

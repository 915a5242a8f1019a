"""Conflation: a reader that is late needs only the newest of several elements of one object."""

import numpy as np
import pyarrow as pa


def newest_per_key(elements: pa.Table) -> pa.Table:
    """Return the newest element of each object, in the order of arrival.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.element_schema`, of one stream, in the order of arrival.

    Returns
    -------
    pyarrow.Table
        The row of the highest version for each `key_hash`; of equal versions, the one that arrived last.
    """
    keys = elements["key_hash"].to_numpy()
    order = np.lexsort((elements["version"].to_numpy(), keys))  # stable, so equal versions stay in order of arrival
    last = np.ones(len(order), dtype=bool)
    last[:-1] = keys[order[1:]] != keys[order[:-1]]
    return elements if last.all() else elements.take(np.sort(order[last]))

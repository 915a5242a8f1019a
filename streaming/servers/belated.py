"""Elements that come too late to change an answer: they are stored as if they had come in their turn."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.elements import STORED_ONLY, bounds_of
from streaming.servers.control.registry import Registry
from streaming.servers.elements import belated_schema
from streaming.servers.routing import Routed
from streaming.servers.sorted_runs import SortedRuns
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


def routed(entries: SortedRuns, stale: pa.Table, old: pa.Table, registry: Registry) -> Routed:
    """Return the elements that came too late to change an answer and are stored, for the regions where they lie.

    Parameters
    ----------
    entries : SortedRuns
        `home.Home.entries`, after the batch.
    stale : pyarrow.Table
        `HomeOutput.stale_elements`.
    old : pyarrow.Table
        Elements with `elements.tracked_schema` that are only stored, of any stream; see `apart`.
    registry : Registry

    Returns
    -------
    Routed
        With `elements.belated_schema`. A stale element comes in its turn if it is heard as much before the newest one
        of its object as its version is before that one's, and an old one if it is heard at its time.
    """
    key, position = np.unique(stale["key_hash"].to_numpy(), return_inverse=True)
    part, row = entries.find(key)
    newest, lag_us = entries.take(part[part >= 0], row[part >= 0], ("version", "heard_us")), np.zeros_like(key)
    lag_us[part >= 0] = newest["heard_us"] - newest["version"]
    old = old.filter(pa.array(np.isin(old["stream"].to_numpy(), list(registry.stored))))
    tables = [
        in_turn(stale, stale["version"].to_numpy() + lag_us[position], registry.space),
        in_turn(old, old["time_us"].to_numpy(), registry.space),
    ]
    late = pa.concat_tables(tables)
    return Routed(late, np.arange(late.num_rows), registry.region_map.region_of(bounds_of(late["bounds"])))

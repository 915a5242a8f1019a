"""What a region learns of the elements of streams that are joined."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.operators.stream_reach import Reach
from streaming.servers.elements import tracked_schema
from streaming.servers.region.place import RegionPlace
from streaming.servers.region.state import Region


def found_elements(place: RegionPlace, regions: Iterable[Region], reach: Reach) -> pa.Table:
    """Return the elements of joined streams that a region must know, whichever region keeps them."""
    tables = [tracked_schema(reach.space).empty_table()]
    for region in regions:
        objects = region.objects.select(lambda run: np.isin(run.columns["stream"], reach.streams))
        properties = region.cold.take(objects)["properties"] if reach.ahead else None
        met = reach.regions(objects.bounds, objects.stream, place.region_map, properties)[:, place.number]
        if met.any():
            tables.append(region.elements(objects.take(met), reach.space))
    return pa.concat_tables(tables)


@dataclass(frozen=True)
class JoinInput:
    """What a region learns of joined streams in one micro-batch: tables with `elements.tracked_schema`.

    Parameters
    ----------
    present : pyarrow.Table
        The newest elements that the region must know. Keys are distinct here, within `gone`, and within `found`.
    gone : pyarrow.Table
        The newest elements of objects that the region no longer needs to know.
    passing : pyarrow.Table
        Superseded elements of the streams in `Registry.streams_in_full`.
    found : pyarrow.Table or None
        Elements, as the batch before left them, that the region must know because a join was registered or changed; see
        `found_elements`.
    """

    present: pa.Table
    gone: pa.Table
    passing: pa.Table
    found: pa.Table | None = None

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table], reach: Reach) -> "JoinInput":
        """Return the input of joined streams, given the tables of `home.HomeOutput` for this region."""
        joined = [_of_streams(tables[name], reach.streams) for name in ("arrivals", "passing")]
        present = pa.concat_tables([joined[0], tables["copies"]])
        left = pa.concat_tables([tables["departures"], tables["removed_copies"]])
        stays = np.isin(left["key_hash"].to_numpy(), present["key_hash"].to_numpy())
        return cls(present, left.filter(pa.array(~stays)), pa.concat_tables([joined[1], tables["superseded_copies"]]))


def _of_streams(table: pa.Table, streams: np.ndarray) -> pa.Table:
    return table.filter(pa.array(np.isin(table["stream"].to_numpy(), streams)))

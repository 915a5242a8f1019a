"""The states of distributed queries, as if another region map had always been in force."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl

from streaming.operators.aggregates import parts
from streaming.operators.runs import find
from streaming.servers.rescaling import Rescaling
from streaming.servers.ways.moving.aggregation import REGIONAL
from streaming.servers.ways.moving.assembler import AssemblerState


def members(rescaling: Rescaling, number: int, of_region: Callable[[int], pl.DataFrame]) -> pl.DataFrame:
    """Return the members of aggregates in a region, given a function that returns those in an old region."""
    frames = []
    if number < len(rescaling.regions):
        frames.append(_of_keys(of_region(number), rescaling.leaving(number), inside=False))
    for other, moves in rescaling.arriving(number):
        frames.append(_of_keys(of_region(other), moves.keys, inside=True))
    return pl.concat(frames) if frames else of_region(0).clear()


def assembly(rescaling: Rescaling, state: AssemblerState, of_region: Callable[[int], pl.DataFrame]) -> AssemblerState:
    """Return the state of the assembler: the part that each region contributes to an aggregate."""
    held = state.aggregation.parts["query"].unique().to_list()
    found = []
    for number in range(rescaling.region_map.regions):
        own = members(rescaling, number, of_region).filter(pl.col("query").is_in(held))
        found.append(parts(own).with_columns(region=pl.lit(number, pl.Int64)).select(list(REGIONAL)))
    return replace(state, aggregation=replace(state.aggregation, parts=pl.concat(found)))


def _of_keys(members: pl.DataFrame, keys: np.ndarray, inside: bool) -> pl.DataFrame:
    chosen = find(keys, members["key"].to_numpy())[1]
    return members.filter(pl.Series(chosen if inside else ~chosen))

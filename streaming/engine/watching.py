"""What regions keep of the answers that rules watch, until the assembler looks at it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from streaming.engine.layout import Layout
from streaming.operators.schedules import NEVER_US
from streaming.servers.control.step import ControlStep
from streaming.servers.ways.rules.watched import SPELLS, WatchedAnswers
from streaming.state.codec import frame_of_table
from streaming.state.versions import Attempt

if TYPE_CHECKING:
    from streaming.engine.batch import RegionInput


def reported(
    found: WatchedAnswers,
    measures: pl.DataFrame | None,
    steps: pl.DataFrame,
    inputs: "Sequence[RegionInput]",
    batch: int,
) -> WatchedAnswers:
    """Return what a region has to tell with measures, steps and silences, and up to when home servers have heard.

    In another region than the first, the inputs do not say that, and have no silences.
    """
    heard_us = min((heard_us for one in inputs if (heard_us := one.head.get("newest_us"))), default=NEVER_US)
    ended = [frame_of_table(one.tables["silences"]) for one in inputs if "silences" in one.tables]
    silences = [found.silences, *(frame.with_columns(batch=pl.lit(batch, pl.Int64)) for frame in ended)]
    rows = [spell for one in inputs for spell in one.head.get("spells", ())]
    measures = found.measures if measures is None else measures
    spells = pl.DataFrame(rows, SPELLS, orient="row")
    return replace(
        found, measures=measures, steps=steps, silences=pl.concat(silences), spells=spells, heard_us=heard_us
    )


def watch(
    layout: Layout, number: int, attempt: Attempt, found: WatchedAnswers, control: ControlStep, ruled: bool
) -> None:
    """Keep what a region has to tell of the answers that rules watch, or tell it if it is time to."""
    store, before, after = layout.store, control.before, control.after
    if len(before.watched):
        earlier = [store.watching(number, attempt.batch)] if number < before.region_map.regions else []
        if number == 0:  # what regions had to tell that there are no more
            gone = range(after.region_map.regions, before.region_map.regions)
            earlier += [store.watching(other, attempt.batch, keep=False) for other in gone]
        for one in earlier:
            found = found.after(one)
    if ruled:
        attempt.save(f"watched/{number}", found)
    store.leave(f"watching/{number}", attempt.batch, WatchedAnswers() if ruled else found)

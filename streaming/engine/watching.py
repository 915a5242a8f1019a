"""What regions keep of the answers that rules watch, until the assembler looks at it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from streaming.engine.layout import Layout
from streaming.operators.schedules import NEVER_US
from streaming.servers.control.step import ControlStep
from streaming.servers.region.watched import WatchedAnswers
from streaming.state.versions import Attempt


def reported(
    found: WatchedAnswers, measures: pl.DataFrame | None, steps: pl.DataFrame, heads: Iterable[Mapping[str, Any]]
) -> WatchedAnswers:
    """Return what a region has to tell with measures and steps, and up to when home servers have heard what they read.

    In another region than the first, the heads of inputs do not say that.
    """
    heard_us = min((heard_us for head in heads if (heard_us := head.get("newest_us"))), default=NEVER_US)
    return replace(found, measures=found.measures if measures is None else measures, steps=steps, heard_us=heard_us)


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

"""The sketchlet of a region: a sketch of each sketched stream, of the elements that the region has accepted.

A region sketches what it would store: all elements but those that are older than the newest of their object.

References
----------
Synopsis (2017), section 3.2: a sketchlet keeps the part of the sketch that belongs to its part of the space.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_of
from streaming.property_columns import number_columns
from streaming.servers.control.registry import Registry
from streaming.servers.region.stream_join import RegionPlace
from streaming.sketch.observations import Observations
from streaming.sketch.settings import SketchSettings
from streaming.sketch.sketch import Sketch, add, merge, split


@dataclass(frozen=True)
class Sketchlet:
    """The sketches of a region.

    Parameters
    ----------
    sketches : mapping of int to Sketch
        By the numbers of streams.
    """

    sketches: Mapping[int, Sketch] = field(default_factory=dict)


def step(was: Sketchlet, tables: Sequence[pa.Table], registry: Registry, following: int) -> Sketchlet:
    """Sketch the elements of a micro-batch.

    Parameters
    ----------
    was : Sketchlet
    tables : sequence of pyarrow.Table
        With `elements.tracked_schema`: what the region has accepted.
    registry : Registry
        After the control entries of the batch. A stream that is no longer sketched loses its sketch, and one whose
        settings have changed begins anew, unless only the budget changed.
    following : int
        The number of the first run of a sketch that begins.

    Returns
    -------
    Sketchlet
        `was` if nothing changed.
    """
    sketches = {}
    for stream, settings in registry.sketched.items():
        sketch = continued(was.sketches.get(stream), settings, following)
        for table in tables:
            mine = np.flatnonzero(table["stream"].to_numpy() == stream)
            if len(mine):
                sketch = add(sketch, observed(table.take(pa.array(mine)), settings))
        sketches[stream] = sketch
    same = sketches.keys() == was.sketches.keys() and all(sketches[n] is was.sketches[n] for n in sketches)
    return was if same else Sketchlet(sketches)


def continued(sketch: Sketch | None, settings: SketchSettings, following: int) -> Sketch:
    """Return a sketch under settings that may have changed: the same one, or one that begins anew."""
    if sketch is None:
        return Sketch.empty(settings, following)
    if sketch.settings == settings:
        return sketch
    budget = {name: getattr(settings, name) for name in ("study_us", "most_leaves", "follow")}
    if replace(sketch.settings, **budget) == settings:
        return replace(sketch, settings=settings)
    return Sketch.empty(settings, max(sketch.following, following))


def observed(elements: pa.Table, settings: SketchSettings) -> Observations:
    """Return what a sketch takes of elements: their times, the middles of their boxes, and the features as numbers.

    Parameters
    ----------
    elements : pyarrow.Table, N rows
    settings : SketchSettings
    """
    bounds, n = bounds_of(elements["bounds"]), settings.space.n
    place = np.stack([(bounds[:, axis] + bounds[:, n + axis]) / 2 for axis in settings.axes])
    values = number_columns(elements["properties"], settings.features)
    return Observations(elements["time_us"].to_numpy(), place, values)


def divided(states: Sequence[Sketchlet], place: RegionPlace, following: int) -> Sketchlet:
    """Return the sketchlet of a region, made of those of all regions under another region map.

    Parameters
    ----------
    states : sequence of Sketchlet
        Of all regions under the map before.
    place : RegionPlace
        The region, and the map from now on.
    following : int
        The number of the first run.
    """
    sketches: dict[int, Sketch] = {}
    for state in states:
        for stream, sketch in state.sketches.items():
            mine = split(sketch, _regions(place, sketch.settings), place.region_map.regions)[place.number]
            known = sketches.get(stream, Sketch.empty(sketch.settings, following))
            sketches[stream] = merge(known, mine)
    return Sketchlet({stream: _numbered(sketch, following) for stream, sketch in sketches.items()})


def _numbered(sketch, following):
    """Return a sketch whose runs have the numbers from `following` on, which no run of the region ever had."""
    runs = tuple(replace(run, number=following + place) for place, run in enumerate(sketch.runs))
    return replace(sketch, runs=runs, following=following + len(runs))


def _regions(place: RegionPlace, settings: SketchSettings) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that tells in which regions places lie, float64 of shape (2, K)."""

    def region_of(places):
        bounds = np.tile(settings.space.whole(), (places.shape[1], 1))
        for axis, column in zip(settings.axes, places, strict=True):
            bounds[:, axis] = bounds[:, settings.space.n + axis] = column
        return place.region_map.region_of(bounds)

    return region_of

"""The sketchlet of a region: a sketch of each sketched stream, of the elements that the region has accepted.

A region sketches what it would store: all elements but those that are older than the newest of their object. Home
servers read them, and send what a sketch takes of them (`observing`).

References
----------
Synopsis (2017), section 3.2: a sketchlet keeps the part of the sketch that belongs to its part of the space.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from streaming.servers.control.registry import Registry
from streaming.servers.elements import taken
from streaming.servers.region.place import RegionPlace
from streaming.servers.ways.sketches.observing import hashes_of
from streaming.sketch.cells import cell_bounds, cell_boxes, cells_of
from streaming.sketch.observations import Observations
from streaming.sketch.sets.sets import Sets
from streaming.sketch.sets.sets import add as add_to_sets
from streaming.sketch.sets.sets import merge as merge_sets
from streaming.sketch.sets.sets import split as split_sets
from streaming.sketch.sets.settings import SetSettings
from streaming.sketch.settings import SketchSettings
from streaming.sketch.sketch import Sketch, add, merge, reduced, split


@dataclass(frozen=True)
class Sketchlet:
    """The sketches of a region.

    Parameters
    ----------
    sketches : mapping of int to Sketch
        By the numbers of streams.
    sets : mapping of int to Sets
        Likewise, of streams whose sets are kept.
    """

    sketches: Mapping[int, Sketch] = field(default_factory=dict)
    sets: Mapping[int, Sets] = field(default_factory=dict)


def step(
    was: Sketchlet, observed: pa.Table, registry: Registry, following: int, asked: Collection[int] = ()
) -> Sketchlet:
    """Sketch the elements of a micro-batch.

    Parameters
    ----------
    was : Sketchlet
    observed : pyarrow.Table
        What home servers observed of elements in the region; see `observing.observed`.
    registry : Registry
        After the control entries of the batch. A stream that is no longer sketched loses its sketch, and one whose
        settings have changed begins anew, unless only the budget changed.
    following : int
        The number of the first run of a sketch that begins.
    asked : collection of int
        The streams whose sketches are asked in this micro-batch: what is computed of their leaves then stays with them.

    Returns
    -------
    Sketchlet
        `was` if nothing changed.
    """
    sketches, sets = {}, {}
    for stream, told in registry.sketched.items():
        sketch = continued(was.sketches.get(stream), told.sketch, following)
        kept = None if told.sets is None else continued_sets(was.sets.get(stream), told.sets, following)
        mine = _of_stream(observed, stream)
        if mine.num_rows:
            observations = Observations.of_table(mine, len(told.sketch.features))
            sketch = add(sketch, observations)
            kept = None if kept is None else add_sets(kept, mine, observations, told.sketch)
        sketches[stream] = reduced(sketch) if stream in asked else sketch
        if kept is not None:
            sets[stream] = kept
    return was if _same(sketches, was.sketches) and _same(sets, was.sets) else Sketchlet(sketches, sets)


def _of_stream(observed: pa.Table, stream: int) -> pa.Table:
    """Return what was observed of a stream; often all is of one, and nothing is copied."""
    return taken(observed, np.flatnonzero(observed["stream"].to_numpy() == stream))


def _same(now: Mapping[int, object], was: Mapping[int, object]) -> bool:
    return now.keys() == was.keys() and all(now[number] is was[number] for number in now)


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


def continued_sets(sets: Sets | None, settings: SetSettings, following: int) -> Sets:
    """Return sets under settings that may have changed: the same ones, or ones that begin anew."""
    if sets is None:
        return Sets(settings, following=following)
    return sets if sets.settings == settings else Sets(settings, following=max(sets.following, following))


def add_sets(sets: Sets, observed: pa.Table, observations: Observations, sketch: SketchSettings) -> Sets:
    """Return sets that know the values of elements; those without a place are left out, as in the sketch.

    Parameters
    ----------
    sets : Sets
    observed : pyarrow.Table
        What home servers observed of elements of the stream; see `observing.observed`.
    observations : Observations
        The same.
    sketch : SketchSettings
        Of the sketch of the same stream, whose cells these are.
    """
    placed = np.flatnonzero(np.isfinite(observations.place).all(axis=0))
    hashes, known = (part[:, placed] for part in hashes_of(observed, len(sets.settings.features)))
    cell = cells_of(observations.place[:, placed], *cell_bounds(sketch), sets.settings.cell_bits)
    return add_to_sets(sets, observations.time_us[placed], cell, hashes, known)


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
    sets: dict[int, Sets] = {}
    for state in states:
        for stream, known_sets in state.sets.items():
            region_of = _regions_of_cells(place, state.sketches[stream].settings)
            mine_sets = split_sets(known_sets, region_of, place.region_map.regions)[place.number]
            sets[stream] = merge_sets(sets.get(stream, Sets(known_sets.settings, following=following)), mine_sets)
        for stream, sketch in state.sketches.items():
            mine = split(sketch, _regions(place, sketch.settings), place.region_map.regions)[place.number]
            known = sketches.get(stream, Sketch.empty(sketch.settings, following))
            sketches[stream] = merge(known, mine)
    return Sketchlet({stream: _numbered(sketch, following) for stream, sketch in sketches.items()}, sets)


def _numbered(sketch: Sketch, following: int) -> Sketch:
    """Return a sketch whose runs have the numbers from `following` on, which no run of the region ever had."""
    number = itertools.count(following)
    waiting = tuple(replace(run, number=next(number)) for run in sketch.waiting)
    runs = tuple(replace(run, number=next(number)) for run in sketch.runs)
    return replace(sketch, waiting=waiting, runs=runs, following=next(number))


def _regions(place: RegionPlace, settings: SketchSettings) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that tells in which regions places lie, float64 of shape (2, K)."""

    def region_of(places: np.ndarray) -> np.ndarray:
        bounds = np.tile(settings.space.whole(), (places.shape[1], 1))
        for axis, column in zip(settings.axes, places, strict=True):
            bounds[:, axis] = bounds[:, settings.space.n + axis] = column
        return place.region_map.region_of(bounds)

    return region_of


def _regions_of_cells(place: RegionPlace, settings: SketchSettings) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return a function that tells in which regions the middles of cells lie, given their number of bits."""
    region_of = _regions(place, settings)

    def of_cells(cell: np.ndarray, bits: int) -> np.ndarray:
        boxes = cell_boxes(cell, np.full(len(cell), bits), *cell_bounds(settings))
        return region_of((boxes[:2] + boxes[2:]) / 2)

    return of_cells

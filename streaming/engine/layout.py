"""How an engine is laid out, and what one of its processes knows beside the states."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.engine.admission import Sample
from streaming.engine.quarantine import Quarantine
from streaming.engine.slots import Slot
from streaming.engine.store import Store
from streaming.history.writer import HistoryWriter
from streaming.servers.control.registry import Registry
from streaming.servers.control.watched import Watched
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.rescaling import Rescaling
from streaming.state.manifest import Shape


@dataclass(frozen=True)
class Layout:
    """The layout of an engine: its partitions and regions, and where it keeps state and history.

    Parameters
    ----------
    store : Store
    partitions : int
        The number of partitions of the ingest log.
    history : HistoryWriter
        Writes the elements that regions store.
    quarantine : Quarantine, optional
        As it was when the engine started; by default, of nobody.
    slot : Slot, optional
        Where this process names its steps; without it, nobody watches them.
    """

    store: Store
    partitions: int
    history: HistoryWriter
    quarantine: Quarantine = field(default_factory=Quarantine)
    slot: Slot | None = None
    known: "ProcessCache" = field(default_factory=lambda: ProcessCache(), compare=False)

    @property
    def shape(self) -> Shape:
        """The settings that the state keeps for life."""
        return Shape(self.store.space.name, self.partitions)

    def watched(self, place: int, batch: int) -> Watched:
        """Return how the steps of a server in a batch are watched; for its place see `quarantine.home_place`."""
        return self.quarantine.watched(place, batch, self.slot)

    def rescaling(self, batch: int, after: Registry) -> Rescaling | None:
        """Return what the registry after a batch changes about the states before it; None if the map stays."""
        before = self.store.registry(batch)
        if before.region_map == after.region_map:
            self.known.rescaling = None
            return None
        known = self.known.rescaling
        if known is None or known[0] != batch or known[1].before is not before:
            known = batch, Rescaling(before, after.region_map, list(self.store.regions(batch)))
            self.known.rescaling, self.known.indices, self.known.kept = known, {}, {}
        return known[1]


@dataclass
class ProcessCache:
    """What this process has computed and can use again; it is no state.

    Attributes
    ----------
    indices : dict of int to ObjectIndex
        By region, the index over its objects in the newest batch that needed it here.
    kept : dict
        What ways of evaluation keep from batch to batch.
    sample : Sample or None
        Some of the elements that its home servers read lately.
    rescaling : tuple or None
        The newest batch with another region map, and what the map changes.
    seconds : dict of int to float
        What queries cost in the batch that runs, as far as it was measured for each of them.
    """

    indices: dict[int, ObjectIndex] = field(default_factory=dict)
    kept: dict[Any, Any] = field(default_factory=dict)
    sample: Sample | None = None
    rescaling: tuple[int, Rescaling] | None = None
    seconds: dict[int, float] = field(default_factory=dict)

    def count(self, seconds: Mapping[int, float]) -> None:
        """Add what queries cost, in seconds."""
        for query, cost_s in seconds.items():
            self.seconds[query] = self.seconds.get(query, 0.0) + cost_s

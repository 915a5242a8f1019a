"""How an engine is laid out, and what one of its processes knows beside the states."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from streaming.engine.admission import Sample
from streaming.engine.quarantine import Quarantine
from streaming.engine.slots import Slot
from streaming.engine.store import Store
from streaming.history.writer import HistoryWriter
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.control.watched import Watched
from streaming.servers.region.object_index import ObjectIndex
from streaming.servers.region.objects import ObjectTable
from streaming.servers.rescaling import Rescaling
from streaming.servers.ways.moving.partial import Tracks
from streaming.spaces import Space
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
            self.known.rescaling, self.known.indices, self.known.of_queries = known, {}, {}
        return known[1]


@dataclass
class ProcessCache:
    """What this process has computed and can use again; it is no state.

    Attributes
    ----------
    tracks : tuple or None
        The newest batch, its control step, and where the focal objects are in it.
    indices : dict of int to ObjectIndex
        By region, the index over its objects in the newest batch that needed it here.
    of_queries : dict of (int, int) to ObjectIndex
        By region and query, the index over the valid reports of encounters in the newest batch that needed it here.
    sample : Sample or None
        Some of the elements that its home servers read lately.
    rescaling : tuple or None
        The newest batch with another region map, and what the map changes.
    seconds : dict of int to float
        What queries cost in the batch that runs, as far as it was measured for each of them.
    """

    tracks: tuple[int, ControlStep, Tracks] | None = None
    indices: dict[int, ObjectIndex] = field(default_factory=dict)
    of_queries: dict[tuple[int, int], ObjectIndex] = field(default_factory=dict)
    sample: Sample | None = None
    rescaling: tuple[int, Rescaling] | None = None
    seconds: dict[int, float] = field(default_factory=dict)

    def count(self, seconds: Mapping[int, float]) -> None:
        """Add what queries cost, in seconds."""
        for query, cost_s in seconds.items():
            self.seconds[query] = self.seconds.get(query, 0.0) + cost_s

    def indexed_of_query(self, space: Space, number: int, query: int, objects: ObjectTable) -> ObjectIndex:
        """Return the index over what a region knows for a query; see `indexed`."""
        made = ObjectIndex.of(objects, space, self.of_queries.get((number, query)))
        self.of_queries[number, query] = made
        return made

    def forget(self, number: int, queries: Container[int]) -> None:
        """Forget the indices of a region over what it knew for queries that have ended, given those that run."""
        for ended in [name for name in self.of_queries if name[0] == number and name[1] not in queries]:
            del self.of_queries[ended]

    def indexed(self, space: Space, number: int, objects: ObjectTable) -> ObjectIndex:
        """Return the index over the objects of a region, which shares with the one before what is the same."""
        known = self.indices.get(number)
        if known is None or known.objects is not objects:
            self.indices[number] = ObjectIndex.of(objects, space, known)
        return self.indices[number]

"""What a way of evaluation is to those who run it: its states, and its parts in the servers of a batch.

An engine goes over the list of ways (`streaming.engine.ways`), and names none of them. So a way that comes is a room of
its own, and a line of that list.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from streaming.operators.region_map import RegionMap
from streaming.operators.schedules import NEVER_US
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import Border, LeftOut
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.control.watched import Watched
from streaming.servers.home import Home
from streaming.servers.home_turn import HomePart, HomeTurn
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.region.object_index import ObjectIndex, indexed
from streaming.servers.region.place import RegionPlace
from streaming.servers.region.state import ObjectChanges, Region
from streaming.servers.rescaling import Rescaling
from streaming.servers.runs_codec import first_number
from streaming.spaces import Space
from streaming.state.codec import Codec
from streaming.state.versions import Attempt

T = TypeVar("T")


@dataclass(frozen=True)
class RegionInput:
    """The input that one home server sends to one region in one micro-batch.

    Parameters
    ----------
    region : int
    head : mapping
        For region 0, counters. While there are joins over event time, or encounters, how far the home server is with
        each stream. JSON can hold it.
    tables : mapping of str to pyarrow.Table
        Those of `home.HomeOutput` and of the ways that have rows for this region, by name.
    """

    region: int
    head: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


class States(Protocol):
    """The states of all servers, each as the batch before left it and as this batch leaves it; see `engine.store`."""

    space: Space

    def before(self, name: str, batch: int, keep: bool = True) -> Any:
        """Return a state before a batch; with `keep`, this process keeps it in memory."""

    def left(self, name: str, batch: int) -> Any:
        """Return the state after a batch."""

    def leave(self, name: str, batch: int, state: Any) -> None:
        """Keep a state after a batch in the memory of this process."""

    def regions(self, batch: int) -> Iterator[Region]:
        """Yield the states of all regional servers before a batch."""


@dataclass(frozen=True)
class WayState:
    """A state that servers leave for the next batch.

    Parameters
    ----------
    name : str
        Unique among all states. That of a region has its number behind it.
    codec : callable
        Given the space, returns how the state is stored.
    passed_on : bool
        Whether regions leave it for the assembler of the same batch, and nobody reads it later.
    """

    name: str
    codec: Callable[[Space], Codec]
    passed_on: bool = False


@dataclass
class RegionTurn:
    """What a regional server does in a batch, as a way of evaluation sees it.

    Parameters
    ----------
    number, batch : int
        The region, and the batch.
    inputs : sequence of RegionInput
        What the home servers sent, in the order of the partitions.
    tables : mapping of str to pyarrow.Table
        The elements in them, with `tracked_schema`, by the names in `engine.batch.ELEMENTS`.
    border : Border
        Inside of which each step runs; it has the control step.
    changed : ObjectChanges
        What became of the objects of the region.
    states : States
    attempt : Attempt
        Saves what the batch leaves.
    rescaling : Rescaling or None
        What the control step changes about the states before it, if the region map changes.
    indices : dict of int to ObjectIndex
        By region, the index over its objects in the newest batch that needed it in this process.
    kept : dict
        What the ways keep in this process from batch to batch, by what each of them chooses; no state.
    results : Results
        What the regional server and the ways before this one tell.
    noted : dict
        What a way notes in the batch for later parts.
    """

    number: int
    batch: int
    inputs: Sequence[RegionInput]
    tables: Mapping[str, pa.Table]
    border: Border
    changed: ObjectChanges
    states: States
    attempt: Attempt
    rescaling: Rescaling | None
    indices: dict[int, ObjectIndex]
    kept: dict[Any, Any]
    results: Results
    noted: dict[str, Any] = field(default_factory=dict)

    @property
    def control(self) -> ControlStep:
        """The control step of the batch, with the queries that are left out."""
        return self.border.control

    @property
    def region_map(self) -> RegionMap:
        """The region map that is in force."""
        return self.control.after.region_map

    @property
    def place(self) -> RegionPlace:
        """Which region it is."""
        return RegionPlace(self.number, self.region_map)

    @property
    def following(self) -> int:
        """The first number of the sorted runs that the batch makes."""
        return first_number(self.batch)

    def before(self, name: str, keep: bool = True) -> Any:
        """Return a state of the region before the batch."""
        return self.states.before(f"{name}/{self.number}", self.batch, keep)

    def before_of(self, name: str, number: int) -> Any:
        """Return a state of another region before the batch."""
        return self.states.before(f"{name}/{number}", self.batch, keep=False)

    def before_of_all(self, name: str) -> list[Any]:
        """Return a state of all regions that there were, before the batch."""
        return [self.before_of(name, number) for number in range(self.control.before.region_map.regions)]

    def leave(self, name: str, state: Any) -> None:
        """Keep a state of the region after the batch in memory, until it is saved."""
        self.states.leave(f"{name}/{self.number}", self.batch, state)

    def save(self, name: str, state: Any) -> None:
        """Save a state of the region after the batch."""
        self.attempt.save(f"{name}/{self.number}", state)

    def sent(self, name: str, nothing: pa.Table, promote: bool = False) -> pa.Table:
        """Return the rows of a table that home servers sent, or `nothing`, which may lack columns with `promote`."""
        tables = [sent.tables[name] for sent in self.inputs if name in sent.tables]
        return pa.concat_tables([nothing, *tables], promote_options="default" if promote else "none")

    def passed_on(self, step: Callable[[ControlStep], T]) -> T:
        """Run a step inside of the border for what the assembler tells, also of queries that are left out."""
        result = self.border.passed(step)
        self.border.lost -= {query for query in self.border.lost if self.control.before.assembled(query)}
        return result

    @property
    def lacking(self) -> np.ndarray:
        """The queries that the region leaves out, int64, ascending."""
        return np.array(sorted(self.border.left_out), dtype=np.int64)


class Part(NamedTuple):
    """What a way tells by the assembler: results, its border, and what regions sent for each query."""

    results: Results
    border: Border
    sent: Mapping[int, tuple[int, ...]] = {}


@dataclass
class AssemblerTurn:
    """What the assembler does in a batch, as a way of evaluation sees it.

    Parameters
    ----------
    last : RegionTurn
        Of the region that ended last. Its process runs the assembler.
    control : ControlStep
    attempt : Attempt
        Saves what the assembler leaves.
    watched : callable
        Returns how the steps of the assembler are watched.
    parts : list of Part
        What the ways before this one tell.
    """

    last: RegionTurn
    control: ControlStep
    attempt: Attempt
    watched: Callable[[], Watched]
    parts: list[Part] = field(default_factory=list)

    @property
    def batch(self) -> int:
        """The batch."""
        return self.last.batch

    def before(self, name: str) -> Any:
        """Return a state of the assembler before the batch."""
        return self.last.states.before(name, self.batch, keep=False)

    def of_regions(self, name: str) -> list[Any]:
        """Return what the regions have passed on in the batch, in their order."""
        regions = range(self.control.after.region_map.regions)
        return [self.last.states.left(f"{name}/{number}", self.batch) for number in regions]

    def border(self, left_out: Mapping[int, LeftOut]) -> Border:
        """Return the border of a step, given the queries that it left out in the batch before."""
        return Border(self.control, left_out, self.watched())

    @functools.cached_property
    def all_regions(self) -> AllRegions:
        """The objects of all regions before and after the batch."""
        states = self.last.states
        before, after = functools.partial(states.regions, self.batch), list(states.regions(self.batch + 1))
        return AllRegions(before, after, states.space, functools.partial(indexed, self.last.indices, states.space))


class Way:
    """A way of evaluation: a group of plans that the servers evaluate alike.

    Attributes
    ----------
    states : tuple of WayState
        What its servers leave.
    home_part : HomePart or None
        How it keeps a part of the state of home servers; None if it keeps nothing there.
    element_tables : tuple of str
        The tables with elements of the batch that it sends from home servers to regions.
    followed_at_home : bool
        Whether home servers evaluate it, and regions only pass on what these tell.
    """

    states: tuple[WayState, ...] = ()
    home_part: HomePart | None = None
    element_tables: tuple[str, ...] = ()
    followed_at_home = False

    def in_home(self, turn: HomeTurn) -> Any:
        """Run the part of a home server in a batch; return what `home_part` keeps there, None for nothing."""
        return None

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether regions have something to do in a batch."""
        raise NotImplementedError

    def assembles(self, control: ControlStep) -> bool:
        """Tell whether the assembler has something to do in a batch, so that it is saved; only if regions have, too."""
        return False

    def reads_before(self, control: ControlStep) -> bool:
        """Tell whether regions read what others have left, so that the batch before is saved."""
        return self.assembles(control)

    def reads_after(self, control: ControlStep) -> bool:
        """Tell whether others read what regions leave, so that the batch is saved."""
        return self.assembles(control)

    def in_region(self, turn: RegionTurn) -> Results:
        """Run the part of a region; return what it tells."""
        raise NotImplementedError

    def in_assembler(self, turn: AssemblerTurn) -> Part:
        """Run the part of the assembler; return what it tells."""
        raise NotImplementedError

    def reported(self, homes: Sequence[Home], registry: Registry) -> Mapping[str, Any]:
        """Return what a task reports now and then for the coordinator, by name, given the states of its home servers.

        JSON can hold it.
        """
        return {}

    def due_us(self, states: States, batch: int, registry: Registry, now_us: int) -> int:
        """Return before which time a batch without elements tells nothing by it, given the clock; `NEVER_US` if never.

        A back-test, which has one region, runs no batch that tells nothing. The states are those before `batch`.
        """
        return now_us + 1 if self.told_by_clock(registry) else NEVER_US

    def told_by_clock(self, registry: Registry) -> bool:
        """Tell whether it may tell something whenever the clock is set, given the registry before a batch."""
        return False

    def waits(self, states: States, batch: int, registry: Registry) -> bool:
        """Tell whether something waits that the next tick tells, since what came before it has no order."""
        return False

    def left_by_regions(self, registry: Registry) -> tuple[str, ...]:
        """Return the states that regions keep in memory until they are saved, given the registry after the batch."""
        return ()

    def kept_by_assembler(self, registry: Registry) -> tuple[str, ...]:
        """Return the states of the assembler that stay as they are in a batch in which it does nothing."""
        return ()

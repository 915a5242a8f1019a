"""What a way of evaluation does in a home server in a batch, and what it keeps there."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from streaming.servers.control.step import ControlStep
from streaming.servers.control.watched import Watched
from streaming.servers.home import Accepted, Home, routed
from streaming.servers.routing import Routed
from streaming.servers.runs_codec import first_number
from streaming.servers.sorted_runs import SortedRuns
from streaming.spaces import Space
from streaming.state.codec import Parts


class Sent(Protocol):
    """Rows of a table that home servers send to regions."""

    def to(self, region: int) -> pa.Table:
        """Return the rows for a region, in their order."""


@dataclass
class HomeTurn:
    """What a home server does in a batch, as a way of evaluation sees it.

    Parameters
    ----------
    batch : int
    elements : pyarrow.Table
        All that it read, with `elements.tracked_schema`, in the order of arrival.
    accepted : Accepted
        Which of them are no older than those that were known.
    home : Home
        Its state after it has accepted them.
    control : ControlStep
    rescaled : bool
        Whether another region map takes force.
    watched : callable
        Returns how the steps of the server are watched.
    tables : dict of str to Sent
        What the ways have sent to regions, by name.
    head : dict
        What they say to region 0. JSON can hold it.
    head_of_all : dict
        What they say to all regions. JSON can hold it.
    """

    batch: int
    elements: pa.Table
    accepted: Accepted
    home: Home
    control: ControlStep
    rescaled: bool
    watched: Callable[[], Watched]
    tables: dict[str, Sent] = field(default_factory=dict)
    head: dict[str, Any] = field(default_factory=dict)
    head_of_all: dict[str, Any] = field(default_factory=dict)

    @property
    def now_us(self) -> int:
        """The latest tick."""
        return self.home.now_us

    @property
    def following(self) -> int:
        """The first number of the sorted runs of a table that begins in the batch."""
        return first_number(self.batch)

    def route(self, name: str, table: pa.Table, rows: np.ndarray, region: np.ndarray) -> None:
        """Send rows (K,) of a table to regions (K,)."""
        self.tables[name] = Routed(table, rows, region)

    def send(self, name: str, table: pa.Table, region: np.ndarray) -> None:
        """Send each row of a table (K,) to a region (K,)."""
        self.route(name, table, np.arange(table.num_rows), region)

    def send_to_objects(self, name: str, rows: pa.Table) -> None:
        """Send result tuples to the regions of their objects."""
        self.tables[name] = routed(self.home, rows)


class EncodedPart(NamedTuple):
    """How a part of a home server's state is stored.

    Parameters
    ----------
    head : mapping
        JSON can hold it. Parts have different names in it.
    tables : mapping of str to SortedRuns
    parts : mapping of str to StatePart
    rows : sequence of pyarrow.Table
        Few rows, which are written with the head.
    """

    head: Mapping[str, Any]
    tables: Mapping[str, SortedRuns] = {}
    parts: Parts = {}
    rows: Sequence[pa.Table] = ()


class HomePart(Protocol):
    """How a way of evaluation keeps a part of the state of home servers.

    Attributes
    ----------
    name : str
        Unique among the parts. It is in the head of a state that has the part.
    """

    name: str

    def encode(self, part: Any) -> EncodedPart:
        """Return how a part is stored."""

    def decode(self, head: Mapping[str, Any], parts: Parts, rows: Iterator[pa.Table], space: Space) -> Any:
        """Return the part that is stored; the inverse of `encode`. It takes its own from `rows`."""

    def divided(self, found: Sequence[Any], partitions: int) -> Sequence[Any]:
        """Return the parts of other home servers, of so many, which know the same; `found` is never empty."""

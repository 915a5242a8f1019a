"""What the assembler knows of rules from one micro-batch to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.results import result_schema
from streaming.servers.control.border import LeftOut
from streaming.servers.sorted_runs import SortedRuns
from streaming.servers.ways.rules.changes import PARTNERS
from streaming.servers.ways.rules.entries import BEGINNING, ENTRY
from streaming.servers.ways.rules.numbers import Numbers
from streaming.servers.ways.rules.silences import SilentFeed
from streaming.spaces import Space


@dataclass(frozen=True)
class RuleState:
    """What the assembler knows of rules.

    Parameters
    ----------
    entries : SortedRuns
        With the columns of `ENTRY`, by `names_of` rule and object.
    beginnings : SortedRuns
        With the columns of `BEGINNING`, by `names_of` rule and object.
    partners : SortedRuns
        With the columns of `PARTNERS`, by `names_of` query and object.
    over : pyarrow.Table
        Result tuples that could not be told with those before them, since these have no order; to be told next.
    lasting : pyarrow.Table
        The result tuples with which alarms by a rate began that last: their objects may be gone when they end. And
        those of alarms about whole answers, which tell what the numbers were. And of rules about silence, those of
        alarms and of objects that are in no region any more.
    numbers : Numbers
        The numbers that rules about whole answers look at.
    feeds : mapping of int to SilentFeed
        When rules about silence, by their numbers, heard their streams.
    stopped : ndarray of int64
        The queries that rules name and that do not run, ascending.
    now_us : int
        The engine's clock.
    decided_us : int
        Before when it is decided what is due.
    left_out : mapping of int to LeftOut
        The rules that the assembler leaves out.
    """

    entries: SortedRuns
    beginnings: SortedRuns
    partners: SortedRuns
    over: pa.Table
    lasting: pa.Table
    numbers: Numbers = field(default_factory=Numbers)
    feeds: Mapping[int, SilentFeed] = field(default_factory=dict)
    stopped: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    now_us: int = 0
    decided_us: int = 0
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)

    @classmethod
    def empty(cls, space: Space, following: int = 0) -> "RuleState":
        """Return the state without rules; the number of the first run of each table is `following`."""
        entries, beginnings, partners = (SortedRuns(like, following=following) for like in (ENTRY, BEGINNING, PARTNERS))
        none = result_schema(space).empty_table()
        return cls(entries, beginnings, partners, none, none)

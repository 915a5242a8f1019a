"""How far windows that have ended are joined, also when the regions or the driving stream change meanwhile.

How far a window is joined is a key of the order of reports (`report_order`). So it does not matter that runs are merged
meanwhile. When the region map or the driving stream changes, each region begins its part of the window anew, and leaves
out the pairs that were told before: those below the position of the region that told them (`WindowProgress`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from streaming.operators.meetings import Meetings
from streaming.operators.region_map import RegionMap
from streaming.operators.time_joins import TimeJoin
from streaming.servers.ways.time_joins.report_order import report_order
from streaming.servers.ways.time_joins.reports import Picked

# The first and the last position in the order of reports, which none of them has.
FIRST, END = 0, np.iinfo(np.int64).max


@dataclass(frozen=True)
class WindowProgress:
    """What regions had told of a window when the region map or the driving stream changed.

    Parameters
    ----------
    region_map : RegionMap
        That was in force until then.
    partner_drives : bool
        Whether the partners drove the join until then.
    positions : tuple of int
        By region, up to which key of the driving reports it had told its pairs.
    """

    region_map: RegionMap
    partner_drives: bool
    positions: tuple[int, ...]

    def untold(self, join: TimeJoin, picked: Picked, pairs: Meetings) -> np.ndarray:
        """Tell which pairs were not told by then, bool of shape (P,)."""
        tellers = join.tellers(pairs, picked.column("bounds"), self.region_map, self.partner_drives)
        driving = pairs.partner if self.partner_drives else pairs.row
        names, bounds = (picked.column(name)[driving] for name in ("name", "bounds"))
        key = report_order(names, bounds, join.space)
        return key >= np.array(self.positions, dtype=np.int64)[tellers]


@dataclass(frozen=True)
class EndedWindow:
    """A window that has ended, of which some pairs are not told yet.

    Parameters
    ----------
    start_us : int
    turn : int
        The turn in which it ended. What comes later does not belong to it.
    position : int
        The pairs of driving reports with keys below it are told.
    earlier : tuple of WindowProgress
        What was told under other region maps, or by another driving stream.
    """

    start_us: int
    turn: int
    position: int = FIRST
    earlier: tuple[WindowProgress, ...] = ()


def redivided(
    windows: Sequence[Sequence[EndedWindow]], region_map: RegionMap, partner_drives: bool, stays: bool
) -> tuple[EndedWindow, ...]:
    """Return the windows of a query that are left, for any region under another map or with another driving stream.

    Parameters
    ----------
    windows : sequence of sequence of EndedWindow
        What is left in each region until now. A region that lacks a window has told all of its pairs.
    region_map : RegionMap
        Until now.
    partner_drives : bool
        Until now.
    stays : bool
        Whether the same stream drives the join from now on.
    """
    positions: dict[int, list[int]] = {}
    known: dict[int, EndedWindow] = {}
    for region, some in enumerate(windows):
        for window in some:
            positions.setdefault(window.start_us, [END] * len(windows))[region] = window.position
            known[window.start_us] = window
    left = []
    for start_us, window in sorted(known.items()):
        told = WindowProgress(region_map, partner_drives, tuple(positions[start_us]))
        position = min(told.positions) if stays else FIRST
        left.append(EndedWindow(start_us, window.turn, position, (*window.earlier, told)))
    return tuple(left)

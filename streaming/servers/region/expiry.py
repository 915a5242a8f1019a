"""When the objects of a region expire, found without looking at every object.

For each block of rows of a run, a time is kept before which none of its objects expires. A block whose time has come is
looked at, and gets a later time. So the work follows the objects that expire, and the runs that are new.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streaming.operators.runs import expand
from streaming.servers.control.registry import Registry
from streaming.servers.sorted_runs import Run, SortedRuns

BLOCK_ROWS = 1024


@dataclass(frozen=True)
class Deadlines:
    """Lower bounds of the times at which objects expire. They follow from the objects, so no file keeps them.

    Parameters
    ----------
    ttl_us : mapping of int to int
        The times-to-live of streams for which the bounds hold.
    earliest : mapping of int to ndarray of int64
        By the number of a run, for each block of `BLOCK_ROWS` rows: no object of the block expires before.
    """

    ttl_us: Mapping[int, int] = field(default_factory=dict)
    earliest: Mapping[int, np.ndarray] = field(default_factory=dict)

    def overdue(self, table: SortedRuns, registry: Registry, now_us: int) -> tuple[np.ndarray, "Deadlines"]:
        """Return the keys of the objects that have expired, and the bounds without them."""
        ttl_us, found = dict(registry.ttl_us), [np.empty(0, dtype=np.int64)]
        if not ttl_us:
            return found[0], Deadlines()
        known = self.earliest if self.ttl_us == ttl_us else {}
        earliest = {}
        for place, run in enumerate(table.parts):
            least = known.get(run.number)
            if least is None:
                least = _earliest(run, registry)
            blocks = np.flatnonzero(least < now_us)
            if len(blocks):
                _, rows = expand(blocks * BLOCK_ROWS, np.minimum(BLOCK_ROWS, len(run.key) - blocks * BLOCK_ROWS))
                rows = rows[table.current(place, rows)]
                ends = _ends(run, rows, registry)
                late = ends < now_us
                found.append(run.key[rows[late]])
                least = least.copy()
                least[blocks] = np.iinfo(np.int64).max
                np.minimum.at(least, rows[~late] // BLOCK_ROWS, ends[~late])
            earliest[run.number] = least
        return np.concatenate(found), Deadlines(ttl_us, earliest)

    def next_us(self, table: SortedRuns, registry: Registry) -> int:
        """Return a time before which no object expires, in microseconds; the largest int64 if none ever does."""
        if not registry.ttl_us:
            return np.iinfo(np.int64).max
        known = self.earliest if self.ttl_us == dict(registry.ttl_us) else {}
        least = [known[run.number] if run.number in known else _earliest(run, registry) for run in table.parts]
        return min((int(ends.min()) for ends in least if len(ends)), default=np.iinfo(np.int64).max)


def _earliest(run: Run, registry: Registry) -> np.ndarray:
    ends = _ends(run, slice(None), registry)
    return np.minimum.reduceat(ends, np.arange(0, len(ends), BLOCK_ROWS)) if len(ends) else ends


def _ends(run: Run, rows: np.ndarray | slice, registry: Registry) -> np.ndarray:
    """Return until when objects live that are not heard again."""
    return run.columns["heard_us"][rows] + registry.ttl_of(run.columns["stream"][rows])

"""How long objects, and whole streams, were silent between their reports, as far as rules ask for that.

A home server knows when each of its objects was heard last. So it finds the silences that a report ends, and tells the
assembler of them, and when it heard each stream. The silences that go on are found by the assembler.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.operators.runs import find, first_of_runs, last_of_runs
from streaming.servers.control.step import ControlStep

# A silence that a report ended: when the object was heard before that, 0 if nobody knows any more, and when it was
# heard again; and the place of the report among those of the object in the micro-batch, -1 for the last one.
SILENCES = pa.schema([(name, pa.int64()) for name in ("stream", "key_hash", "from_us", "to_us", "step")])
# The clock of a stream stands still when nobody has reported for this part of the time for which objects must be
# silent.
STANDS_STILL_AFTER = 1 / 4


def stands_still_us(silent_us: int) -> int:
    """Return after how long without a report the clock of a stream stands still, in microseconds."""
    return int(silent_us * STANDS_STILL_AFTER)


@dataclass(frozen=True)
class HeardStreams:
    """What a home server heard of streams of whose objects rules ask whether they are silent.

    Parameters
    ----------
    silences : pyarrow.Table
        With `SILENCES`.
    spells : list of list of int
        The number of a stream, and from when to when it was heard in microseconds: without a time in between that is so
        long that the clock of the stream stands still.
    """

    silences: pa.Table = field(default_factory=SILENCES.empty_table)
    spells: list[list[int]] = field(default_factory=list)


def heard_streams(
    elements: pa.Table, rows: np.ndarray, known: tuple[np.ndarray, np.ndarray], control: ControlStep
) -> HeardStreams:
    """Return the silences of objects and the spells of streams that a micro-batch of a home server tells.

    Parameters
    ----------
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival.
    rows : ndarray of int64, shape (N,)
        Those that were accepted, by key and arrival.
    known : tuple of ndarray of int64
        The `key_hash` of the objects that were known before, ascending, and when they were heard.
    control : ControlStep
    """
    asked = control.after.running.groups.rules.rules.silences
    if not asked:
        return HeardStreams()
    stream, heard_us = elements["stream"].to_numpy(), elements["heard_us"].to_numpy()
    spells = []
    for number, least_us in asked.items():
        times_us = np.unique(heard_us[stream == number])
        cuts = np.flatnonzero(np.diff(times_us) > stands_still_us(least_us)) + 1
        spells += [[number, int(some[0]), int(some[-1])] for some in np.split(times_us, cuts) if len(some)]
    streams = np.array(sorted(asked), dtype=np.int64)
    silent_us = np.array([asked[number] for number in streams.tolist()], dtype=np.int64)
    mine = rows[find(streams, stream[rows])[1]]
    lives = np.column_stack([streams, silent_us, control.after.ttl_of(streams)])
    return HeardStreams(_silences(elements, mine, known, lives, control.now_us), spells)


def _silences(
    elements: pa.Table, rows: np.ndarray, known: tuple[np.ndarray, np.ndarray], lives: np.ndarray, now_us: int
) -> pa.Table:
    """Return the silences that some elements end.

    `lives` (S, 3) has streams, for how long their objects must be silent at least, and their times-to-live.
    """
    if not len(rows):
        return SILENCES.empty_table()
    key, heard_us, stream = (elements[name].to_numpy()[rows] for name in ("key_hash", "heard_us", "stream"))
    first = first_of_runs(key)
    moment = np.cumsum(first | first_of_runs(heard_us))
    of = np.cumsum(first) - 1
    step = moment - moment[first][of]
    step = np.where(step == step[last_of_runs(key)][of], -1, step)
    place, found = find(known[0], key[first])
    were_us = np.zeros(len(place), dtype=np.int64)
    were_us[found] = known[1][place[found]]
    before_us = np.r_[np.int64(0), heard_us[:-1]]
    before_us[first] = were_us
    silent_us, ttl_us = lives[find(lives[:, 0], stream)[0], 1:].T
    # An object that has expired is in no answer any more: the report with which it is back is told, too.
    long = (before_us == 0) | (heard_us - before_us > np.minimum(silent_us, ttl_us)) | (before_us < now_us - ttl_us)
    columns = (stream, key, before_us, heard_us, step)
    return pa.table([pa.array(column[long]) for column in columns], schema=SILENCES)

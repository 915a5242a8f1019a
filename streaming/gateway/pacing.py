"""Compute when the elements of a recording are due and which times they then get: arithmetic, no clock, no waiting."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.gateway.clock import SECOND_US
from streaming.gateway.transports.base import Replay

# If two neighbours are further apart than this, the recording leaps (a night without data, a wrong time stamp, the
# next vehicle of a file that is sorted by vehicle), and the replay does not wait.
LEAP_US = 3600 * SECOND_US
# A replay that fell behind by more than this (nobody took its elements) does not catch up; it goes on from where
# it stood.
LATE_US = 1 * SECOND_US


@dataclass(frozen=True)
class ReplayProgress:
    """How far the replay of a recording has come.

    Parameters
    ----------
    start_us : int
        Wall-clock time at which the beginning of the recording was played, or would have been played.
    latest_us : int or None
        Event time of the element read last; None at the beginning of a lap.
    played_us : int
        Distance of that element from the beginning, in recorded time without the leaps.
    furthest_us : int
        The greatest such distance so far.
    """

    start_us: int
    latest_us: int | None = None
    played_us: int = 0
    furthest_us: int = 0


def schedule(
    progress: ReplayProgress | None, time_us: np.ndarray, replay: Replay, now_us: int
) -> tuple[ReplayProgress, np.ndarray, np.ndarray]:
    """Return when elements are due, and which event times they get if they are restamped.

    An element is due when the replay reaches the newest event time so far, so elements out of order are played in the
    order of the recording. A restamped element gets the time at which the replay reaches its own event time.

    Parameters
    ----------
    progress : ReplayProgress or None
        How far the replay has come; None before the first elements.
    time_us : ndarray of int64, shape (N,), N >= 1
        Event times in the order of the recording.
    replay : Replay
    now_us : int
        Wall-clock time in microseconds.

    Returns
    -------
    progress : ReplayProgress
        After these elements.
    due_us : ndarray of int64, shape (N,)
        Wall-clock times, never decreasing; `now_us` at full speed.
    stamp_us : ndarray of int64, shape (N,)
        Event times for restamped elements.
    """
    progress = progress or ReplayProgress(now_us)
    steps = np.diff(time_us, prepend=time_us[0] if progress.latest_us is None else progress.latest_us)
    steps[np.abs(steps) > LEAP_US] = 0
    distance = progress.played_us + np.cumsum(steps)
    furthest = np.maximum(np.maximum.accumulate(distance), progress.furthest_us)
    scale = 1 / replay.speed if replay.speed else 1.0
    start_us = progress.start_us
    if replay.speed:
        late_us = now_us - start_us - round(int(furthest[0]) * scale)
        start_us += late_us if late_us > LATE_US else 0
    # Never before the start: each lap must be later than the one before, even if its first elements are out of order.
    stamp_us = start_us + np.rint(np.maximum(distance, 0) * scale).astype(np.int64)
    due_us = start_us + np.rint(furthest * scale).astype(np.int64) if replay.speed else np.full(len(time_us), now_us)
    return ReplayProgress(start_us, int(time_us[-1]), int(distance[-1]), int(furthest[-1])), due_us, stamp_us


def next_lap(progress: ReplayProgress | None, replay: Replay, now_us: int) -> ReplayProgress | None:
    """Return the progress of a recording that begins again, later than all that it has played."""
    if progress is None:
        return None
    scale = 1 / replay.speed if replay.speed else 1.0
    end_us = progress.start_us + round(progress.furthest_us * scale)
    return ReplayProgress(max(now_us, end_us + 1))


def restamped(elements: pa.Table, stamp_us: np.ndarray) -> pa.Table:
    """Return elements with new event times, and versions shifted by the same amount as the times."""
    shift_us = stamp_us - elements["time_us"].to_numpy()
    version = elements["version"].to_numpy() + shift_us
    schema = elements.schema
    for name, column in (("time_us", stamp_us), ("version", version)):
        elements = elements.set_column(schema.get_field_index(name), schema.field(name), pa.array(column))
    return elements

"""Watermarks: up to which event time the reports of streams are complete.

A home server sees the reports of its objects in the order of its ingest log. It tells for each stream the newest event
time that it has seen. A stream is complete up to the least of these times, minus how late a report may be. Whether a
report is late depends on the reports before it in the same log alone, so it does not matter where batches are cut.

References
----------
T. Akidau et al., "The Dataflow Model", PVLDB 8(12), 2015, section 2.3: watermarks; late data.
Li et al., "Distributed join query method for large-scale spatial data streams", 2023, section 2.3.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

# Before any event time.
LONG_AGO_US = -(2**62)

Name = TypeVar("Name", bound=Hashable)


class Progress(NamedTuple):
    """How far a home server is with a stream: the newest event time it has seen, and when it heard a report last.

    Both are in microseconds, the second by the wall clock. `reports` is how many it has heard.
    """

    newest_us: int
    heard_us: int
    reports: int = 0


def seen_before(time_us: np.ndarray, newest_us: int) -> np.ndarray:
    """Return the newest event time that is seen once each report is there, at least its own.

    Parameters
    ----------
    time_us : ndarray of int64, shape (N,)
        The event times of reports of a stream, in the order of arrival.
    newest_us : int
        The newest event time before them.

    Returns
    -------
    ndarray of int64, shape (N,)

    Examples
    --------
    >>> seen_before(np.array([5, 3, 9]), 4).tolist()
    [5, 5, 9]
    """
    return np.maximum.accumulate(np.r_[newest_us, time_us])[1:]


def slowest(homes: Iterable[Mapping[Name, Progress]]) -> dict[Name, Progress]:
    """Return how far home servers are with each stream together: the least of their newest event times.

    With it, other home servers can take over their objects, and find no report late that would have been on time.
    """
    least: dict[Name, Progress] = {}
    for home in homes:
        for stream, told in home.items():
            other = least.get(stream, told)
            newest_us, heard_us = min(told.newest_us, other.newest_us), max(told.heard_us, other.heard_us)
            least[stream] = Progress(newest_us, heard_us)
    return least


def complete_until(
    homes: Iterable[Mapping[Name, Progress]], streams: Iterable[Name], since_us: int, now_us: int, idle_us: int
) -> int:
    """Return the event time up to which streams are complete, without regard to lateness.

    A stream from which a home server has heard nothing for `idle_us` does not count there. If none counts, event time
    is taken to go on with the wall clock.

    Parameters
    ----------
    homes : iterable of mapping of int to Progress
        What each home server tells, by stream number, or by what else names a stream.
    streams : iterable of int
    since_us : int
        When somebody began to wait for the streams, by the wall clock.
    now_us : int
    idle_us : int

    Returns
    -------
    int
        In microseconds; `LONG_AGO_US` if nothing is complete.

    Examples
    --------
    >>> homes = [{1: Progress(50, 100)}, {1: Progress(40, 100)}]
    >>> complete_until(homes, [1], 0, now_us=100, idle_us=10), complete_until(homes, [1], 0, now_us=115, idle_us=10)
    (40, 65)
    """
    none = Progress(LONG_AGO_US, since_us)
    told = [home.get(stream, none) for home in homes for stream in dict.fromkeys(streams)]
    heard = [max(one.heard_us, since_us) for one in told]
    active = [one.newest_us for one, at_us in zip(told, heard, strict=True) if now_us - at_us <= idle_us]
    if active:
        return min(active)
    newest_us = max((one.newest_us for one in told), default=LONG_AGO_US)
    return newest_us + now_us - max(heard) if newest_us > LONG_AGO_US else LONG_AGO_US

"""Which reports of places are believed: jumps that no object could make are not."""

from typing import NamedTuple

import numpy as np

from streaming.kinds.track.plan import BELIEVED_IN_A_ROW
from streaming.operators.geodesics import geodesic_m
from streaming.operators.runs import expand

MICROSECONDS = 1_000_000
# What a report is: not believed; believed, as the object went there from the last believed place; or believed although
# the object cannot have come from there.
DOUBTED, FOLLOWED, ANEW = 0, 1, 2


class Beliefs(NamedTuple):
    """What is believed of K objects.

    Parameters
    ----------
    time_us : ndarray of int64, shape (K,)
        When the last believed report was; -1 without one.
    place : ndarray of float64, shape (K, 2)
        Where it was: longitude and latitude.
    doubted : ndarray of int64, shape (K,)
        How many reports since then, of which each agrees with the one before, are not believed.
    doubted_us : ndarray of int64, shape (K,)
    doubted_place : ndarray of float64, shape (K, 2)
        The last of these.
    """

    time_us: np.ndarray
    place: np.ndarray
    doubted: np.ndarray
    doubted_us: np.ndarray
    doubted_place: np.ndarray

    @classmethod
    def none(cls, objects: int) -> "Beliefs":
        """Return that nothing is known."""
        zeros = np.zeros(objects, dtype=np.int64)
        return cls(zeros - 1, np.zeros((objects, 2)), zeros, zeros - 1, np.zeros((objects, 2)))


def believed(
    was: Beliefs, count: np.ndarray, time_us: np.ndarray, place: np.ndarray, fastest_m_s: float
) -> tuple[np.ndarray, Beliefs]:
    """Tell which reports are believed.

    A report is believed if its object need not have moved faster than `fastest_m_s` since the last believed one. The
    first report of an object always is. Of reports that are not, those in a row that agree with each other are
    counted; the third is believed.

    Parameters
    ----------
    was : Beliefs
        Of K objects.
    count : ndarray of int64, shape (K,)
        How many reports each object has.
    time_us : ndarray of int64, shape (N,)
        By object; those of an object ascend, and begin after its last one.
    place : ndarray of float64, shape (N, 2)
    fastest_m_s : float

    Returns
    -------
    outcome : ndarray of int8, shape (N,)
        `DOUBTED`, `FOLLOWED` or `ANEW`; the first report of an object is `ANEW`.
    beliefs : Beliefs
    """
    first = np.cumsum(count) - count
    outcome = np.full(len(time_us), FOLLOWED, dtype=np.int8)
    outcome[first[(was.time_us < 0) & (count > 0)]] = ANEW
    now = Beliefs(*(column.copy() for column in was))
    clean = _clean(was, first, count, time_us, place, fastest_m_s)
    heard = np.flatnonzero(clean & (count > 0))
    newest = first[heard] + count[heard] - 1
    now.time_us[heard], now.place[heard], now.doubted[heard] = time_us[newest], place[newest], 0
    rest = np.flatnonzero(~clean)
    for turn in range(int(count[rest].max(initial=0))):
        one = rest[count[rest] > turn]
        outcome[first[one] + turn] = _judged(
            now, one, time_us[first[one] + turn], place[first[one] + turn], fastest_m_s
        )
    return outcome, now


def _clean(
    was: Beliefs, first: np.ndarray, count: np.ndarray, time_us: np.ndarray, place: np.ndarray, fastest_m_s: float
) -> np.ndarray:
    """Tell which objects are never too fast from one report to the next, bool of shape (K,)."""
    if not len(time_us) or np.isinf(fastest_m_s):
        return np.ones(len(count), dtype=bool)
    before_us, before = np.roll(time_us, 1), np.roll(place, 1, axis=0)
    heard = count > 0
    before_us[first[heard]], before[first[heard]] = was.time_us[heard], was.place[heard]
    soon = _reached(before_us, before, time_us, place, fastest_m_s) | (before_us < 0)
    of = expand(first, count)[0]
    return np.bincount(of[~soon], minlength=len(count)) == 0


def _reached(
    before_us: np.ndarray, before: np.ndarray, time_us: np.ndarray, place: np.ndarray, fastest_m_s: float
) -> np.ndarray:
    """Tell which places can be reached in time."""
    limit_m = fastest_m_s * ((time_us - before_us) / MICROSECONDS)
    return geodesic_m(*before.T, *place.T, limit_m=limit_m) <= limit_m


def _judged(now: Beliefs, one: np.ndarray, time_us: np.ndarray, place: np.ndarray, fastest_m_s: float) -> np.ndarray:
    """Judge the next report of some objects, and put down in `now` what is believed of them then."""
    known = now.time_us[one] >= 0
    soon = known & _reached(now.time_us[one], now.place[one], time_us, place, fastest_m_s)
    agrees = (now.doubted[one] > 0) & _reached(now.doubted_us[one], now.doubted_place[one], time_us, place, fastest_m_s)
    row = np.where(agrees, now.doubted[one], 0) + 1
    anew = ~known | (~soon & (row >= BELIEVED_IN_A_ROW))
    taken, doubted = soon | anew, ~(soon | anew)
    now.time_us[one[taken]], now.place[one[taken]], now.doubted[one[taken]] = time_us[taken], place[taken], 0
    now.doubted[one[doubted]], now.doubted_us[one[doubted]] = row[doubted], time_us[doubted]
    now.doubted_place[one[doubted]] = place[doubted]
    return np.where(anew, ANEW, np.where(soon, FOLLOWED, DOUBTED))

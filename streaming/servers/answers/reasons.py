"""Why answers change, and which changes are told.

Whose change decided that an answer changed, and whether a place or a filter did.

Two may change in one micro-batch: the object, and its partner in a join or the focus of a range. The change is then
taken apart into two steps: first the object is as it is now, then the other one is, too. The step at which the pair
begins or ceases to satisfy the query decided. If both places were right before and after that step, it is the filter
that changed its mind; otherwise somebody moved.

Nearest neighbours have rivals besides. An object is *near* where it is no farther than the farthest neighbour; where
there are fewer than k, than the query may look.
"""

from dataclasses import dataclass

import numpy as np

from streaming.operators.runs import find
from streaming.operators.stream_join import Meetings, StreamJoins
from streaming.results import (
    CANCELLED,
    EDITED,
    ENTERED,
    FAILED,
    FILTERED,
    FOCUS_MOVED,
    HANDOFF,
    MOVED,
    OTHERS_MOVED,
    PARTNER_FILTERED,
    PARTNER_MOVED,
    QUIET_HANDOFF,
    REGISTERED,
    STAYED,
)
from streaming.servers.answers.members import Answers
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.region.objects import Cold, Objects, elements_of


def reasons(name: np.ndarray, fate: np.ndarray, before: Registry, after: Registry, applied: Applied) -> np.ndarray:
    """Return why an answer changed, by its number (P,) and the object's fate (P,); the query's own change first."""
    reason = fate.copy()
    changed = np.isin(name, applied.changed)
    here = fate == MOVED
    reason[here & changed] = EDITED
    reason[here & changed & ~np.isin(name, before.ids)] = REGISTERED
    reason[(fate == HANDOFF) & find(after.quiet, name)[1]] = QUIET_HANDOFF
    reason[np.isin(name, applied.cancelled)] = CANCELLED
    reason[np.isin(name, applied.failed)] = FAILED
    return reason


def worth_telling(members: Answers, moved: np.ndarray, before: Registry, after: Registry) -> np.ndarray:
    """Tell which changes are told: what enters and leaves, and of what stays the news, unless an answer is quiet.

    Parameters
    ----------
    members : Answers, P members
        By the names under which they are told, with distances as measured.
    moved : ndarray of bool, shape (P,)
        Whose object, or partner, is another element than before.
    before, after : Registry
    """
    news = moved | ~np.isnan(members.distance)
    if before is not after:
        # What lost its distance to an edit, and what was not told while the answer was quiet.
        altered = [np.setdiff1d(getattr(before, name), getattr(after, name)) for name in ("measuring_ids", "quiet")]
        news |= np.isin(members.query, np.concatenate(altered))
    return (members.sign != STAYED) | (news & ~find(after.quiet, members.query)[1])


# A reason by (the other one decided, a filter decided).
OF_PARTNERS = np.array([[MOVED, FILTERED], [PARTNER_MOVED, PARTNER_FILTERED]], dtype=np.int8)

# Less is no distance.
LEAST_M = 1e-6

OF_FOCUSES = np.array([[MOVED, FILTERED], [FOCUS_MOVED, FOCUS_MOVED]], dtype=np.int8)


def decided(
    entered: np.ndarray, between: np.ndarray, places: tuple[np.ndarray, np.ndarray, np.ndarray], table: np.ndarray
) -> np.ndarray:
    """Return the reasons of changes, int8 of shape (P,).

    Parameters
    ----------
    entered : ndarray of bool, shape (P,)
        Whether the pair satisfies the query now, and did not before; otherwise it is the other way around.
    between : ndarray of bool, shape (P,)
        Whether it satisfies it with the object as it is now, and the other one as it was.
    places : tuple of ndarray of bool, shape (P,)
        Whether it did but for filters, before, between, and now.
    table : ndarray of int8, shape (2, 2)
        `OF_PARTNERS` or `OF_FOCUSES`.
    """
    other = between != entered
    old, middle, new = places
    filtered = np.where(other, middle & new, old & middle)
    return table[other.astype(np.int8), filtered.astype(np.int8)]


@dataclass(frozen=True)
class Versions:
    """The objects of a region as they are, and as they were; all that is known of their cold columns."""

    are: Objects
    were: Objects
    cold: Cold

    def of_pairs(self, changes: Answers, touched: np.ndarray, joins: StreamJoins, places: StreamJoins, ids: np.ndarray):
        """Return why pairs of joins with streams changed, int8 of shape (P,).

        Parameters
        ----------
        changes : Answers, P members
            Of which the objects and the partners are among those that are; with signs.
        touched : ndarray of bool, shape (2, P)
            Which objects, and which partners, have another element than before.
        joins, places : StreamJoins
            With and without their filters.
        ids : ndarray of int64
            Their numbers, ascending.
        """
        reason = np.where(touched[0], MOVED, PARTNER_MOVED).astype(np.int8)
        sides = changes.key, changes.partner
        known = np.array([find(self.were.key_hash, side)[1] for side in sides])
        reason[~known[1] & known[0]] = PARTNER_MOVED
        reason[~known[0]] = MOVED
        crossed = np.flatnonzero(known.all(0) & (changes.sign != STAYED))
        if len(crossed):
            reason[crossed] = self._crossed(changes.take(crossed), touched[:, crossed], joins, places, ids)
        return reason

    def _crossed(self, changes, touched, joins, places, ids):
        both, query = self.are.followed(self.were), find(ids, changes.query)[0]
        elements, here = elements_of(both, self.cold), len(self.are)
        (row, partner), (old_row, old_partner) = (
            [start + find(objects.key_hash, side)[0] for side in (changes.key, changes.partner)]
            for start, objects in ((0, self.are), (here, self.were))
        )
        left, right = np.unique(np.r_[row, old_row]), np.unique(np.r_[partner, old_partner])
        met = places.pairs(elements, both.key_hash, left, right)
        steps = (old_row, old_partner), (row, old_partner), (row, partner)
        placed = tuple(_among(met, one, query, other) for one, other in steps)
        entered = changes.sign == ENTERED
        # With one side alone there is one step alone.
        between = np.where(touched[0], entered, ~entered)
        twice = np.flatnonzero(touched.all(0))
        if len(twice):
            met = joins.pairs(elements, both.key_hash, np.unique(row[twice]), np.unique(old_partner[twice]))
            between[twice] = _among(met, row[twice], query[twice], old_partner[twice])
        return decided(entered, between, placed, OF_PARTNERS)


@dataclass(frozen=True)
class Ways:
    """How far objects that entered or left answers of nearest neighbours are from where the queries are.

    Parameters
    ----------
    entered : ndarray of bool, shape (P,)
    old, between, new : ndarray of float64, shape (P,)
        From the object as it was to the focus as it was, from the object as it is to the focus as it was, and from the
        object as it is to the focus as it is; infinite where the query does not look. Only of queries with filters
        `old` counts, and of the others it may be NaN.
    limit, new_limit : ndarray of float64, shape (P,)
        How far what is near may be, before and now.
    choosy : ndarray of bool, shape (P,)
        Whether the query has filters.
    """

    entered: np.ndarray
    old: np.ndarray
    between: np.ndarray
    new: np.ndarray
    limit: np.ndarray
    new_limit: np.ndarray
    choosy: np.ndarray

    def reasons(self) -> np.ndarray:
        """Return why they entered or left, int8 of shape (P,)."""
        filtered = self.choosy & np.where(self.entered, _near(self.old, self.limit), _near(self.new, self.new_limit))
        moved, carried = (_near(way, self.limit) == self.entered for way in (self.between, self.new))
        reason = np.select([filtered, moved, carried], [FILTERED, MOVED, FOCUS_MOVED], OTHERS_MOVED)
        return reason.astype(np.int8)


def _near(way, limit):
    return np.isfinite(way) & (way <= limit * (1 + 1e-12) + LEAST_M)


def _among(meetings: Meetings, row, query, partner):
    """Tell which pairs of rows are among those that satisfy joins, bool of shape (P,)."""
    values = [
        np.unique(np.r_[getattr(meetings, name), some])
        for name, some in (("row", row), ("query", query), ("partner", partner))
    ]

    def coded(*columns):
        row, query, partner = (np.searchsorted(known, some) for known, some in zip(values, columns, strict=True))
        return (row * len(values[1]) + query) * len(values[2]) + partner

    return np.isin(coded(row, query, partner), coded(meetings.row, meetings.query, meetings.partner))

"""Why answers change, and which changes are reported.

A reason says which side decided that an answer changed, and whether a place or a filter did.

Both sides may change in one micro-batch: the object, and its partner in a join or the focus of a range. The change is
then split into two steps: first the object is replaced by its new version, then the other side. The step at which the
pair begins or ceases to satisfy the query decides. If the pair satisfies the query without its filters both before and
after that step, a filter decided; otherwise somebody moved.

An answer of nearest neighbours also changes when other objects move. An object is *near* if it is no farther than the
farthest neighbour; if there are fewer than k neighbours, if it is no farther than the query may look.
"""

from dataclasses import dataclass

import numpy as np

from streaming.operators.meetings import Meetings
from streaming.operators.runs import distinct, find
from streaming.operators.stream_join import StreamJoins
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
    """Return why answers changed, int8 of shape (P,); MOVED if neither the query nor the object's fate explains it.

    The end or the failure of the query decides first, then the object's fate, then a new plan of the query. A handoff
    in an answer that reports membership alone becomes `QUIET_HANDOFF`.

    Parameters
    ----------
    name : ndarray of int64, shape (P,)
        The numbers under which the answers are reported.
    fate : ndarray of int8, shape (P,)
        Why each object left, or MOVED.
    before, after : Registry
        Without and with the batch's control entries.
    applied : Applied
    """
    reason = fate.copy()
    changed = np.isin(name, applied.changed)
    here = fate == MOVED
    reason[here & changed] = EDITED
    reason[here & changed & ~find(before.ids, name)[1]] = REGISTERED
    handed = np.flatnonzero(fate == HANDOFF)
    reason[handed[after.quiet(name[handed])]] = QUIET_HANDOFF
    reason[np.isin(name, applied.cancelled)] = CANCELLED
    reason[np.isin(name, applied.failed)] = FAILED
    return reason


def worth_telling(members: Answers, moved: np.ndarray, before: Registry, after: Registry) -> np.ndarray:
    """Select the changes to report: entries, exits, and news of members that stay; bool of shape (P,).

    An answer that reports membership alone (`Registry.quiet`) has no news of members that stay.

    Parameters
    ----------
    members : Answers, P members
        Under the numbers under which they are reported, with distances as measured.
    moved : ndarray of bool, shape (P,)
        Whether the object or its partner has another element than before.
    before, after : Registry
    """
    news = moved | ~np.isnan(members.distance)
    if before is not after:
        # An edit took the distance away, or the answer reported membership alone until now.
        for was, now in ((before.measuring, after.measuring), (before.quiet, after.quiet)):
            news |= was(members.query) & ~now(members.query)
    return (members.sign != STAYED) | (news & ~after.quiet(members.query))


# The reason, indexed by (the other side decided, a filter decided).
OF_PARTNERS = np.array([[MOVED, FILTERED], [PARTNER_MOVED, PARTNER_FILTERED]], dtype=np.int8)

# A difference of distances that is smaller does not count.
LEAST_M = 1e-6

OF_FOCUSES = np.array([[MOVED, FILTERED], [FOCUS_MOVED, FOCUS_MOVED]], dtype=np.int8)


def decided(
    entered: np.ndarray, between: np.ndarray, places: tuple[np.ndarray, np.ndarray, np.ndarray], table: np.ndarray
) -> np.ndarray:
    """Return the reasons of changes, int8 of shape (P,).

    Parameters
    ----------
    entered : ndarray of bool, shape (P,)
        Whether the pair satisfies the query now, and did not before; False if it is the other way around.
    between : ndarray of bool, shape (P,)
        Whether it satisfies the query with the object as it is now, and the other side as it was.
    places : tuple of ndarray of bool, shape (P,)
        Whether it satisfies the query without its filters: before, between, and now.
    table : ndarray of int8, shape (2, 2)
        `OF_PARTNERS` or `OF_FOCUSES`.
    """
    other = between != entered
    old, middle, new = places
    filtered = np.where(other, middle & new, old & middle)
    return table[other.astype(np.int8), filtered.astype(np.int8)]


@dataclass(frozen=True)
class ObjectVersions:
    """The objects of a region as they are and as they were, and the cold columns of both."""

    are: Objects
    were: Objects
    cold: Cold

    def of_pairs(
        self, changes: Answers, touched: np.ndarray, joins: StreamJoins, places: StreamJoins, ids: np.ndarray
    ) -> np.ndarray:
        """Return why pairs of joins with streams changed, int8 of shape (P,).

        Parameters
        ----------
        changes : Answers, P members
            With signs. Their objects and partners are among `are`.
        touched : ndarray of bool, shape (2, P)
            Which objects (first row), and which partners (second row), have another element than before.
        joins, places : StreamJoins
            The joins with and without their filters.
        ids : ndarray of int64
            The numbers of the joins, ascending.
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

    def _crossed(
        self, changes: Answers, touched: np.ndarray, joins: StreamJoins, places: StreamJoins, ids: np.ndarray
    ) -> np.ndarray:
        both, query = self.are.followed(self.were), find(ids, changes.query)[0]
        elements, here = elements_of(both, self.cold), len(self.are)
        (row, partner), (old_row, old_partner) = (
            [start + find(objects.key_hash, side)[0] for side in (changes.key, changes.partner)]
            for start, objects in ((0, self.are), (here, self.were))
        )
        steps = (old_row, old_partner), (row, old_partner), (row, partner)
        met = places.judged(elements, both.key_hash, *_distinct(*np.hstack(steps)))
        old, middle, new = (_among(met, one, query, other) for one, other in steps)
        entered = changes.signs == ENTERED
        # If only one side has another element, its step decides.
        between = np.where(touched[0], entered, ~entered)
        twice = np.flatnonzero(touched.all(0))
        if len(twice):
            met = joins.judged(elements, both.key_hash, *_distinct(row[twice], old_partner[twice]))
            between[twice] = _among(met, row[twice], query[twice], old_partner[twice])
        return decided(entered, between, (old, middle, new), OF_PARTNERS)


@dataclass(frozen=True)
class FocusDistances:
    """How far objects that entered or left answers of nearest neighbours are from the foci of the queries.

    Parameters
    ----------
    entered : ndarray of bool, shape (P,)
    old, between, new : ndarray of float64, shape (P,)
        From the object as it was to the focus as it was, from the object as it is to the focus as it was, and from the
        object as it is to the focus as it is. Infinite where the query does not look at the object. `old` counts only
        for queries with filters; for others it may be NaN.
    limit, new_limit : ndarray of float64, shape (P,)
        How far an object may be to count as near, before and now.
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
        """Return why the objects entered or left, int8 of shape (P,)."""
        filtered = self.choosy & np.where(self.entered, _near(self.old, self.limit), _near(self.new, self.new_limit))
        moved, carried = (_near(way, self.limit) == self.entered for way in (self.between, self.new))
        reason = np.select([filtered, moved, carried], [FILTERED, MOVED, FOCUS_MOVED], OTHERS_MOVED)
        return reason.astype(np.int8)


def _near(way: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.isfinite(way) & (way <= limit * (1 + 1e-12) + LEAST_M)


def _distinct(row: np.ndarray, partner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs, (P,) each, once each."""
    size = int(partner.max(initial=0)) + 1
    row, partner = np.divmod(distinct(row * size + partner), size)
    return row, partner


def _among(meetings: Meetings, row: np.ndarray, query: np.ndarray, partner: np.ndarray) -> np.ndarray:
    """Tell which triples of row, query and partner are among `meetings`, bool of shape (P,)."""
    values = [
        np.unique(np.r_[getattr(meetings, name), some])
        for name, some in (("row", row), ("query", query), ("partner", partner))
    ]

    def coded(*columns: np.ndarray) -> np.ndarray:
        row, query, partner = (np.searchsorted(known, some) for known, some in zip(values, columns, strict=True))
        return (row * len(values[1]) + query) * len(values[2]) + partner

    return np.isin(coded(row, query, partner), coded(meetings.row, meetings.query, meetings.partner))

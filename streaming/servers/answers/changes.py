"""The changes between two answers."""

from collections.abc import Sequence

import numpy as np

from streaming.operators.runs import distinct, find
from streaming.results import ENTERED, LEFT, STAYED
from streaming.servers.answers.members import Answers

# The sign of a tuple, indexed by (was in the answer, is in the answer).
SIGN = np.array([[STAYED, ENTERED], [LEFT, STAYED]], dtype=np.int8)
NAMES = ("key", "query", "partner")


def compared(old: Answers, new: Answers) -> Answers:
    """Return each member of either answer once, with its sign, and its distance in the new answer.

    They are ordered by key, query and partner. The distance of a member that left is NaN.
    """
    values = _values(old, new)
    was, now = np.sort(_coded(old, values), kind="stable"), _coded(new, values)
    order = np.argsort(now, kind="stable")
    now, distance = now[order], np.broadcast_to(new.distance, len(now))[order]
    members = distinct(np.r_[was, now])
    place, is_in = find(now, members)
    sign = SIGN[find(was, members)[1].astype(np.int8), is_in.astype(np.int8)]
    measured = np.full(len(members), np.nan)
    measured[is_in] = distance[place[is_in]]
    rest, partner = np.divmod(members, max(1, len(values[2])))
    key, query = np.divmod(rest, max(1, len(values[1])))
    return Answers(values[0][key], values[1][query], values[2][partner], measured, sign)


def changed_objects(old: Answers, new: Answers) -> np.ndarray:
    """Return the keys of the objects with which the members of two answers differ, ascending."""
    both = compared(old, new)
    return distinct(both.key[both.sign != STAYED])


def among(members: Answers, others: Answers) -> np.ndarray:
    """Tell which members of an answer are members of another, bool of shape (P,)."""
    values = _values(members, others)
    return find(np.sort(_coded(others, values)), _coded(members, values))[1]


def coded(one: Answers, other: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each member of two answers, int64 each; members that are equal have the same one."""
    values = _values(one, other)
    return _coded(one, values), _coded(other, values)


def _values(one: Answers, other: Answers) -> list[np.ndarray]:
    """Return the objects, the queries and the partners that occur in either answer, each ascending."""
    return [distinct(np.r_[getattr(one, name), getattr(other, name)]) for name in NAMES]


def _coded(answers: Answers, values: Sequence[np.ndarray]) -> np.ndarray:
    """Return a number for each member; these sort by key, query and partner."""
    key, query, partner = (
        np.searchsorted(known, getattr(answers, name)) for known, name in zip(values, NAMES, strict=True)
    )
    return (key * len(values[1]) + query) * len(values[2]) + partner

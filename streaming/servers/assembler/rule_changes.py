"""Changes of answers that rules watch: which objects entered and left, however many partners they have there."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pyarrow as pa

from streaming.operators.runs import find, first_of_runs
from streaming.servers.answers.names import names_of
from streaming.servers.region.watched import whole_second
from streaming.servers.sorted_runs import Column, SortedRuns

# Of answers with pairs: with how many partners an object is in it.
PARTNERS: Mapping[str, Column] = {name: np.empty(0, dtype=np.int64) for name in ("query", "count")}
_NO_NAMES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class MembershipChanges:
    """Objects that entered or left answers, by micro-batch: a row for each of these three.

    Parameters
    ----------
    query, key, batch, time_us : ndarray of int64, shape (K,)
    count : ndarray of int64, shape (K,)
        How many pairs more, or less; where there are no pairs, 1 for an entry and -1 for an exit.
    paired : ndarray of bool, shape (K,)
    """

    query: np.ndarray
    key: np.ndarray
    batch: np.ndarray
    time_us: np.ndarray
    count: np.ndarray
    paired: np.ndarray

    @classmethod
    def of(cls, rows: pa.Table, since_us: int = 0) -> "MembershipChanges":
        """Return the changes that tuples of answers tell, none of them before a time; handoffs cancel out."""
        names = ("query", "key_hash", "batch", "time_us", "sign", "partner_hash")
        query, key, batch, time_us, sign, partner = (rows[name].to_numpy() for name in names)
        time_us, sign = np.maximum(whole_second(time_us), since_us), sign.astype(np.int64)
        if not len(query):
            return cls(query, key, batch, time_us, sign, partner != 0)
        name = names_of(query, key)
        order = np.lexsort((batch, name))
        query, key, batch = query[order], key[order], batch[order]
        start = np.flatnonzero(first_of_runs(name[order]) | first_of_runs(batch))
        count, latest_us = np.add.reduceat(sign[order], start), np.maximum.reduceat(time_us[order], start)
        paired = np.logical_or.reduceat(partner[order] != 0, start)
        return cls(query[start], key[start], batch[start], latest_us, count, paired)

    def take(self, rows: np.ndarray) -> "MembershipChanges":
        """Return the changes at positions, or where a mask is true."""
        return MembershipChanges(*(getattr(self, one.name)[rows] for one in fields(self)))

    def of_queries(self, queries: np.ndarray) -> "MembershipChanges":
        """Return only the changes of some queries, ascending."""
        return self.take(find(queries, self.query)[1])


def members_of(
    changes: MembershipChanges, whole: MembershipChanges, watched: tuple[np.ndarray, np.ndarray], partners: SortedRuns
) -> tuple[list[MembershipChanges], SortedRuns]:
    """Return the changes of objects in answers, however many partners they have there, and how many these are.

    Parameters
    ----------
    changes, whole : MembershipChanges
        What changed, and who is in whole answers.
    watched : tuple of ndarray of int64
        The queries that rules watched before the micro-batch, and those that they watch now, ascending.
    partners : SortedRuns
        With the columns of `PARTNERS`, before the micro-batch.
    """
    before, after = watched
    known, new = np.intersect1d(before, after), np.setdiff1d(after, before)
    if len(known) < len(before):
        part, row = partners.select(lambda run: ~find(known, run.columns["query"])[1])
        partners = partners.without(np.sort(partners.keys(part, row)), newest=False)
    changes = changes.of_queries(known)
    paired, alone = changes.take(changes.paired), changes.take(~changes.paired & (changes.count != 0))
    turned, partners = _with_partners(paired, partners)
    first = whole.of_queries(new)
    first = first.take(first.paired)
    names = names_of(first.query, first.key)
    order = np.argsort(names, kind="stable")
    columns = {"query": first.query[order], "count": first.count[order]}
    return [turned, alone], partners.put(names[order], columns, _NO_NAMES, len(order))


def _with_partners(changes: MembershipChanges, table: SortedRuns) -> tuple[MembershipChanges, SortedRuns]:
    """Return when objects got their first partner or lost their last one, and the table with how many they have."""
    name = names_of(changes.query, changes.key)  # ordered, and by batch
    start = np.flatnonzero(first_of_runs(name))
    part, row = table.find(name[start])
    were = np.zeros(len(start), dtype=np.int64)
    were[part >= 0] = table.take(part[part >= 0], row[part >= 0], ("count",))["count"]
    of = np.cumsum(first_of_runs(name)) - 1
    summed = np.cumsum(changes.count)
    now = were[of] + summed - (summed - changes.count)[start][of]
    turned = replace(changes, count=np.where(now > 0, 1, -1)).take((now > 0) != (now - changes.count > 0))
    last = np.r_[start[1:], len(name)][: len(start)] - 1
    are = now[last]
    gone, difference = name[last][(are <= 0) & (were > 0)], int((are > 0).sum()) - int((were > 0).sum())
    columns = {"query": changes.query[last][are > 0], "count": are[are > 0]}
    return turned, table.put(name[last][are > 0], columns, gone, difference)

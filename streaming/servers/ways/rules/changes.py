"""Changes of answers that rules watch: which objects entered and left, however many partners they have there."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.operators.runs import find, first_of_runs
from streaming.servers.answers.names import names_of
from streaming.servers.sorted_runs import Column, SortedRuns
from streaming.servers.ways.rules.watched import NO_QUERY

T = TypeVar("T", int, np.ndarray)

# A micro-batch has fewer turns, two for each step of an object.
_TURNS = 1 << 21
# Of answers with pairs: with how many partners an object is in it.
PARTNERS: Mapping[str, Column] = {name: np.empty(0, dtype=np.int64) for name in ("query", "count")}
_NO_NAMES = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class MembershipChanges:
    """Objects that entered or left answers, by micro-batch and step: a row for each of these four.

    Parameters
    ----------
    query, key, batch, time_us : ndarray of int64, shape (K,)
    turn : ndarray of int64, shape (K,)
        The order of changes: micro-batch by micro-batch, in each of them step by step, and `last_turn` at its end.
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
    turn: np.ndarray

    @classmethod
    def of(cls, rows: pa.Table, since_us: int = 0) -> "MembershipChanges":
        """Return the changes that tuples of answers tell, none of them before a time; handoffs cancel out."""
        names = ("query", "key_hash", "batch", "time_us", "sign", "partner_hash")
        query, key, batch, time_us, sign, partner = (rows[name].to_numpy() for name in names)
        time_us, sign = np.maximum(time_us, since_us), sign.astype(np.int64)
        if not len(query):
            return cls(query, key, batch, time_us, sign, partner != 0, last_turn(batch))
        name = names_of(query, key)
        order = np.lexsort((batch, name))
        query, key, batch = query[order], key[order], batch[order]
        start = np.flatnonzero(first_of_runs(name[order]) | first_of_runs(batch))
        count, latest_us = np.add.reduceat(sign[order], start), np.maximum.reduceat(time_us[order], start)
        paired = np.logical_or.reduceat(partner[order] != 0, start)
        batch = batch[start]
        return cls(query[start], key[start], batch, latest_us, count, paired, last_turn(batch))

    def by_steps(self, steps: pl.DataFrame, queries: np.ndarray) -> "MembershipChanges":
        """Return the changes with those of objects that reported several times in a micro-batch step by step.

        The last step is what is known of the object after the micro-batch. So with how many partners the object was in
        an answer before it follows from there, and from how many more or less it has now.

        Parameters
        ----------
        steps : polars.DataFrame
            With `STEPS`.
        queries : ndarray of int64
            Those whose answers the steps are in, or are not in.
        """
        if steps.is_empty():
            return self
        of = ["key", "batch"]
        ordered = _in_order(steps, of)
        mine = pl.DataFrame({"query": queries})
        here = steps.join(mine, on="query", how="semi")
        net = pl.DataFrame({one.name: getattr(self, one.name) for one in fields(self)})
        told = net.join(mine, on="query", how="semi").join(ordered, on=of, how="semi")
        named = ["query", *of]
        pairs = pl.concat([here.select(*named, "paired"), told.select(*named, "paired")])
        pairs = pairs.group_by(named).agg(pl.col("paired").any())
        grid = pairs.join(ordered, on=of).join(
            here.drop("time_us", "paired"), on=[*named, "version", "heard_us"], how="left"
        )
        grid = grid.join(told.select(*named, net="count"), on=named, how="left").fill_null(0)
        grid = grid.sort(*named, "step")
        first = pl.col("count").last().over(named) - pl.col("net")
        more = pl.col("count") - pl.col("count").shift(1).over(named).fill_null(first)
        grid = grid.with_columns(
            count=more, turn=pl.col("batch") * _TURNS + pl.when("last").then(_TURNS - 2).otherwise(2 * pl.col("step"))
        )
        columns = list(net.columns)
        both = pl.concat([net.join(pairs, on=named, how="anti"), grid.filter(pl.col("count") != 0).select(columns)])
        found = MembershipChanges(*(both[name].to_numpy() for name in columns))
        return found.take(np.lexsort((found.turn, names_of(found.query, found.key))))

    def take(self, rows: np.ndarray) -> "MembershipChanges":
        """Return the changes at positions, or where a mask is true."""
        return MembershipChanges(*(getattr(self, one.name)[rows] for one in fields(self)))

    def of_queries(self, queries: np.ndarray) -> "MembershipChanges":
        """Return only the changes of some queries, ascending."""
        return self.take(find(queries, self.query)[1])


def _in_order(steps: pl.DataFrame, of: list[str]) -> pl.DataFrame:
    """Return the steps of objects by micro-batch, numbered, with times of which none is earlier than the one before."""
    ordered = steps.filter(pl.col("query") == NO_QUERY).sort(*of, "version", "heard_us")
    return ordered.select(
        *of,
        "version",
        "heard_us",
        pl.col("time_us").cum_max().over(of),
        pl.int_range(pl.len()).over(of).alias("step"),
        (pl.int_range(pl.len()).over(of) == pl.len().over(of) - 1).alias("last"),
    )


def last_turn(batch: T) -> T:
    """Return the turn of what is so at the end of a micro-batch, or of micro-batches.

    Between any two turns, and after the last one, is one at which no report is.
    """
    return (batch + 1) * _TURNS - 2


def turn_of(batch: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the turns of steps (K,) of objects in micro-batches (K,); -1 is the last step."""
    return np.where(step < 0, last_turn(batch), batch * _TURNS + 2 * step)


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
    name = names_of(changes.query, changes.key)  # ordered, and by turn
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

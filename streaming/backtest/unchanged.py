"""Leave out elements with which an object stays in the very answers that it is in, where moves are not asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from streaming.backtest.asked import US, BacktestRequest
from streaming.backtest.cuts import SECOND_US, about_silence
from streaming.elements import bounds_of, stream_number
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.operators.elements import Elements
from streaming.operators.runs import find, first_of_runs
from streaming.servers.control.registry import Registry
from streaming.sketch.sets.hashing import mixed

# An object that is silent for this part of its time-to-live may be close to falling silent: its elements count then.
NEAR_SILENCE, ALIVE_EVERY = 1 / 4, 1 / 2
# What an object that was not seen yet is in: nothing has this number, and no answers have 0.
UNSEEN = np.uint64(1)


def by_themselves(plans: Sequence[Plan]) -> bool:
    """Tell whether the answers of plans depend on each element alone, so that elements can be matched beforehand."""
    if about_silence(plans):
        return False
    looking = [plan for plan in plans if not kind_of(plan).queries(plan)]
    return all(
        kind_of(plan).evaluation(plan) is Evaluation.REGIONAL
        and kind_of(plan).layer(plan) is None
        and plan.emit != "all"
        for plan in looking
    )


class Unchanged:
    """Finds the elements that change who is in which answer, by the operators with which regions match them.

    What an object tells besides, that it is not silent, needs few of its elements: the first of each half of its
    time-to-live, and those with a gap behind them. Its place when a rule tells an alarm is looked up (`placed`).

    Parameters
    ----------
    asked : BacktestRequest
    """

    def __init__(self, asked: BacktestRequest) -> None:
        lives = {stream_number(name): round(ttl_s * US) for name, ttl_s in asked.ttl_s.items() if ttl_s is not None}
        self._streams, self._lives_us = (
            np.array(list(column), dtype=np.int64)
            for column in (sorted(lives), (lives[name] for name in sorted(lives)))
        )
        none = np.empty(0, dtype=np.int64)
        self._known = _Last(none, none.view(np.uint64), none)
        self._places = _Places(none, none, none.astype(np.int32), pa.table({}))

    def of(self, elements: pa.Table, registry: Registry) -> pa.Table:
        """Return the elements that matter, given those that follow the ones of the call before."""
        key, heard_us, stream = (elements[name].to_numpy() for name in ("key_hash", "heard_us", "stream"))
        held = self._answers(elements, stream, registry)
        order = np.argsort(key, kind="stable")
        key, heard_us, held, stream = key[order], heard_us[order], held[order], stream[order]
        first = first_of_runs(key)
        last = np.r_[first[1:], np.ones(min(1, len(key)), dtype=bool)]
        place, known = find(self._known.key, key[first])
        before, before_us = np.r_[UNSEEN, held[:-1]], np.r_[np.int64(0), heard_us[:-1]]
        before[first], before_us[first] = UNSEEN, np.iinfo(np.int64).min // 2
        at = np.flatnonzero(first)[known]
        before[at], before_us[at] = self._known.held[place[known]], self._known.heard_us[place[known]]
        after_us = np.where(last, np.iinfo(np.int64).max // 2, np.r_[heard_us[1:], 0])
        mine, limited = find(self._streams, stream)
        life_us = np.full(len(key), np.iinfo(np.int64).max // 8)
        life_us[limited] = self._lives_us[mine[limited]]
        every_us = np.maximum(1, (life_us * ALIVE_EVERY).astype(np.int64))
        alive = heard_us // every_us != before_us // every_us
        alive |= (after_us - heard_us >= life_us * NEAR_SILENCE) | (heard_us - before_us >= life_us * NEAR_SILENCE)
        chosen = np.zeros(len(key), dtype=bool)
        chosen[order] = (held != before) | (alive & limited & (held != 0)) | (last & (held != 0))
        self._known = self._known.after(_Last(key[last], held[last], heard_us[last]))
        self._places = _Places(
            key[first], key, (heard_us // SECOND_US).astype(np.int64), elements.take(pa.array(order))
        )
        return elements if chosen.all() else elements.filter(pa.array(chosen))

    def placed(self, rows: pa.Table, chosen: np.ndarray, clock_us: int) -> pa.Table:
        """Return result tuples, of which some have place and properties of their objects' newest elements.

        Parameters
        ----------
        rows : pyarrow.Table
            With `results.result_schema`.
        chosen : ndarray of bool, shape (K,)
        clock_us : int
            A whole second: elements that were heard later do not count.
        """
        at = np.flatnonzero(chosen)
        place, found = self._places.newest(rows["key_hash"].to_numpy()[at], clock_us // SECOND_US)
        at = at[found]
        if not len(at):
            return rows
        index = np.arange(rows.num_rows)
        index[at] = rows.num_rows + np.arange(len(at))
        newest = self._places.elements.take(pa.array(place[found]))
        for name in ("bounds", "properties"):
            both = pa.chunked_array([*rows[name].chunks, *newest[name].chunks])
            column = rows.schema.get_field_index(name)
            rows = rows.set_column(column, rows.schema.field(column), both.take(pa.array(index)))
        return rows

    @staticmethod
    def _answers(elements: pa.Table, stream: np.ndarray, registry: Registry) -> np.ndarray:
        """Return one number for the answers in which each element's object is then, uint64; 0 for none."""
        cold = elements.select(["key", "geometry", "properties"])
        has_geometries = cold["geometry"].null_count < len(cold)
        looked = Elements(stream, bounds_of(elements["bounds"]), lambda rows: cold.take(pa.array(rows)), has_geometries)
        pairs = registry.queries.match(looked, registry.features)
        held = np.zeros(len(stream), dtype=np.uint64)
        np.add.at(held, pairs.row, mixed(pairs.query.view(np.uint64)) | np.uint64(2))
        return held


@dataclass(frozen=True)
class _Last:
    """What was known last of objects, by key, ascending: the answers they were in, and when they were heard."""

    key: np.ndarray
    held: np.ndarray
    heard_us: np.ndarray

    def after(self, newer: "_Last") -> "_Last":
        rest = ~find(newer.key, self.key)[1]
        key = np.r_[self.key[rest], newer.key]
        order = np.argsort(key)
        held, heard_us = np.r_[self.held[rest], newer.held], np.r_[self.heard_us[rest], newer.heard_us]
        return _Last(key[order], held[order], heard_us[order])


@dataclass(frozen=True)
class _Places:
    """Elements by key, then time: the distinct keys, and of each element the key and the second."""

    keys: np.ndarray
    key: np.ndarray
    second: np.ndarray
    elements: pa.Table

    def newest(self, keys: np.ndarray, second: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of the newest elements of keys (K,) before a second, and which have one."""
        if not len(self.key):
            return np.zeros(len(keys), dtype=np.int64), np.zeros(len(keys), dtype=bool)
        base, end = int(self.second.min()), int(self.second.max()) + 2
        rank, found = find(self.keys, keys)
        name = np.searchsorted(self.keys, self.key) * (end - base) + self.second - base
        place = np.searchsorted(name, rank * (end - base) + min(max(second, base), end - 1) - base, "left") - 1
        return place, found & (place >= 0) & (self.key[np.maximum(place, 0)] == keys)

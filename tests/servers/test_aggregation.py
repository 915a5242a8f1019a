"""Aggregates of a batch are told in one order, however the rows of the state before it lie."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from streaming.kinds.aggregate.plan import Aggregate, Threshold
from streaming.operators.aggregates import PARTS
from streaming.servers.ways.moving.aggregation import AggregateGroups, Aggregation, step

ROUTES = [f"route {number}" for number in range(40)]
AGGREGATES = {
    7: Aggregate("count", group_by="route", thresholds=(Threshold(above=5.0), Threshold(below=2.0))),
    8: Aggregate("count", group_by="route"),
}


def heard(counts):
    """What a region tells: so many members of each route, for both queries."""
    told = [(query, route, many) for query in AGGREGATES for route, many in counts.items()]
    query, group, count = zip(*told, strict=True)
    rows = pl.DataFrame({"query": query, "group": group, "count": count, "known": count}, strict=False)
    lacking = {name: pl.lit(None) for name in PARTS if name not in rows.columns}
    parts = rows.with_columns(**lacking).select(list(PARTS)).cast(PARTS)
    return SimpleNamespace(parts=parts, altered=np.array(list(AGGREGATES)), renewed=np.empty(0, dtype=np.int64))


def groups(now_us):
    return AggregateGroups(
        AGGREGATES, np.empty(0, dtype=np.int64), lambda keys: np.zeros(len(keys), dtype=np.int64), now_us
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_what_is_told_does_not_depend_on_the_order_of_the_state(seed):
    was, _, _ = step(Aggregation.none(), [heard(dict.fromkeys(ROUTES[:30], 1))], groups(1))
    shuffled = Aggregation(
        *(frame.sample(fraction=1, shuffle=True, seed=seed) for frame in (was.parts, was.told, was.crossed))
    )
    now = [heard({route: 1 + number % 8 for number, route in enumerate(ROUTES[10:])})]
    once, again = step(was, now, groups(2)), step(shuffled, now, groups(2))
    for one, other in zip(once[1:], again[1:], strict=True):
        assert len(one) and one.equals(other)
    assert once[0].told.equals(again[0].told) and once[0].crossed.equals(again[0].crossed)

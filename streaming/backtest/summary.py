"""What a back-test comes to: who was in the answer, from when to when, and where that began."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_document, bounds_of
from streaming.operators.runs import first_of_runs
from streaming.results import ENTERED, LEFT, REGISTERED, result_schema
from streaming.spaces import Space

COLUMNS = ("sign", "reason", "key", "key_hash", "time_us", "bounds", "properties", "partner", "partner_hash")


@dataclass(frozen=True)
class AnswerSpans:
    """The spans of time in which objects, or pairs, were in an answer, by their beginnings.

    Parameters
    ----------
    rows : pyarrow.Table
        The result tuples with which they began.
    end_us : ndarray of int64, shape (K,)
        When they ended, in microseconds since 1970 UTC; -1 for those that had not ended.
    entered, left : int
        How many objects came in and went out; those that were in at the beginning did not come in.
    """

    rows: pa.Table
    end_us: np.ndarray
    entered: int
    left: int


class QuerySummary:
    """Collects what is told of one query.

    Parameters
    ----------
    query : int
    space : Space
    """

    def __init__(self, query: int, space: Space) -> None:
        self.query, self.space = query, space
        self._told = [result_schema(space).empty_table().select(COLUMNS)]

    def take(self, rows: pa.Table) -> int:
        """Add the result tuples of a micro-batch; return how many objects came in."""
        if not rows.num_rows:
            return 0
        sign = rows["sign"].to_numpy()
        mine = (rows["query"].to_numpy() == self.query) & ((sign == ENTERED) | (sign == LEFT))
        if not mine.any():
            return 0
        self._told.append(rows.select(COLUMNS).filter(pa.array(mine)))
        return int((sign[mine] == ENTERED).sum())

    def spans(self) -> AnswerSpans:
        """Return who was in the answer, and when."""
        told = pa.concat_tables(self._told).combine_chunks()
        sign, reason, key, partner, time_us = (
            told[name].to_numpy() for name in ("sign", "reason", "key_hash", "partner_hash", "time_us")
        )
        order = np.lexsort((np.arange(len(sign)), partner, key))
        begins = sign[order] == ENTERED
        same = ~(first_of_runs(key[order]) | first_of_runs(partner[order]))
        ends = np.r_[same & (sign[order] == LEFT), False][1:] if len(order) else begins
        end_us = np.where(ends, np.r_[time_us[order], -1][1:], -1) if len(order) else np.empty(0, dtype=np.int64)
        began, ended_us = order[begins], end_us[begins]
        turn = np.argsort(time_us[began], kind="stable")
        entered = int(((sign == ENTERED) & (reason != REGISTERED)).sum())
        return AnswerSpans(told.take(pa.array(began[turn])), ended_us[turn], entered, int((sign == LEFT).sum()))

    def document(self, most: int) -> dict[str, Any]:
        """Return the spans as a JSON object, the first `most` of them one by one."""
        spans = self.spans()
        shown = spans.rows.slice(0, most)
        boxes = bounds_of(shown["bounds"]) if shown.num_rows else np.empty((0, 2 * self.space.n))
        columns = (shown[name].to_pylist() for name in ("key", "partner", "time_us", "properties", "reason"))
        return {
            "entered": spans.entered,
            "left": spans.left,
            "total": spans.rows.num_rows,
            "truncated": spans.rows.num_rows > shown.num_rows,
            "spans": [
                {
                    "key": key,
                    "partner": partner,
                    "start_us": start_us,
                    "end_us": None if end_us < 0 else end_us,
                    "before": reason == REGISTERED,
                    "bounds": bounds_document(box),
                    "properties": orjson.loads(properties or "{}"),
                }
                for (key, partner, start_us, properties, reason), end_us, box in zip(
                    zip(*columns, strict=True), spans.end_us[:most].tolist(), boxes.tolist(), strict=True
                )
            ],
        }

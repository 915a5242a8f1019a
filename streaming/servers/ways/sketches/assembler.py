"""The assembler of queries of sketches: it puts the leaves of all regions together, and answers.

References
----------
Synopsis (2017), section 3.5: the partial answers of the sketchlets are merged; continuous queries.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_array, key_hashes, stream_number
from streaming.operators.failures import Failures
from streaming.results import (
    CANCELLED,
    EDITED,
    ENTERED,
    FAILED,
    LEFT,
    MOVED,
    REGISTERED,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.answers.tuples import Results
from streaming.servers.control.border import LeftOut, QueriesFailed
from streaming.servers.control.step import ControlStep
from streaming.servers.ways.sketches.asked_leaves import AskedLeaves, ticking
from streaming.servers.ways.sketches.pacing import SketchPace
from streaming.sketch.asking.answering import answered
from streaming.sketch.news import differs
from streaming.sketch.settings import InvalidSketch


@dataclass(frozen=True)
class ToldAnswers:
    """The answers of queries of sketches as they were told last.

    Parameters
    ----------
    answers : mapping of int to sequence of dict
        By query, a JSON document for each of its questions.
    left_out : mapping of int to LeftOut
        The queries that the assembler leaves out.
    pace : SketchPace
        Which queries were answered when, and what that cost.
    """

    answers: Mapping[int, Sequence[dict[str, Any]]] = field(default_factory=dict)
    left_out: Mapping[int, LeftOut] = field(default_factory=dict)
    pace: SketchPace = field(default_factory=SketchPace)


def step(
    told: ToldAnswers, found: Sequence[AskedLeaves], asked: Sequence[int], control: ControlStep
) -> tuple[ToldAnswers, Results]:
    """Answer the queries that are due, and tell the answers that differ from those before by more than their bounds.

    Parameters
    ----------
    told : ToldAnswers
    found : sequence of AskedLeaves
        What each region sent.
    asked : sequence of int
        The queries that are `due`.
    control : ControlStep

    Returns
    -------
    told : ToldAnswers
    results : Results
        One tuple for each question: its answer is the JSON document in `properties`.
    """
    before, after, applied = control.before.sketch_plans, control.after.sketch_plans, control.applied
    known = {query: answers for query, answers in told.answers.items() if query not in set(applied.forgotten.tolist())}
    costs, rows, now = Failures(), _Rows(control), dict(known)
    answers = _answers(found, asked, control, costs)
    for query in known.keys() - after.keys():
        rows.add(query, now.pop(query), LEFT)
    for query, answer in answers.items():
        now[query] = rows.changes(query, known.get(query, ()), answer)
    snapshots = _Rows(control)
    for query in applied.snapshots:
        if query in after:
            snapshots.add(query, now.get(query, ()), ENTERED, SNAPSHOT)
    table = rows.table()
    results = Results(table, snapshots.table(), {"results": table.num_rows}, seconds=costs.seconds)
    return ToldAnswers(now), replace(results, aggregates=tuple(before.keys() | after.keys()))


def paced(pace: SketchPace, found: Sequence[AskedLeaves], asked: Sequence[int], control: ControlStep) -> SketchPace:
    """Return what is known of costs and turns after a micro-batch, also of queries that some server leaves out."""
    costs: Counter[int] = Counter()
    for one in found:
        costs.update(one.looked)
    return pace.after(asked, ticking(control), costs, control.now_us)


def _answers(
    found: Sequence[AskedLeaves], asked: Sequence[int], control: ControlStep, costs: Failures
) -> dict[int, Sequence[dict[str, Any]]]:
    """Return the answers of the queries that are due, by query."""
    answers: dict[int, Sequence[dict[str, Any]]] = {}
    failed: dict[int, str] = {}
    for query in asked:
        needed = [one.leaves[query] for one in found if query in one.leaves]
        if query not in control.after.sketch_plans or len(needed) < len(found):  # some server leaves it out
            continue
        plan, began = control.after.sketch_plans[query], perf_counter()
        by_need = {need: [one[need] for one in needed] for need in needed[0]}
        try:
            settings = control.after.sketched[stream_number(plan.stream)].sketch
            answers[query] = answered(plan, settings, by_need, control.now_us)
        except InvalidSketch as error:
            failed[query] = str(error)
        costs.charge(np.array([query]), np.array([perf_counter() - began]))
    if failed:
        raise QueriesFailed(failed)
    return answers


class _Rows:
    """Result tuples of answers."""

    def __init__(self, control: ControlStep) -> None:
        self._control = control
        self._rows: list[tuple[Any, ...]] = []

    def changes(
        self, query: int, told: Sequence[dict[str, Any]], answers: Sequence[dict[str, Any]]
    ) -> Sequence[dict[str, Any]]:
        """Add what has to be told of a query's answers; return them as they are told now.

        An answer that differs from the one before by less than its bounds stays as it was told.
        """
        plans = self._control.before.sketch_plans.get(query), self._control.after.sketch_plans[query]
        if told and plans[0] != plans[1]:  # another plan may have other questions
            self.add(query, told, LEFT)
            told = ()
        if not told:
            self.add(query, answers, ENTERED)
            return answers
        now = []
        for place, (was, answer) in enumerate(zip(told, answers, strict=True)):
            if news := differs(was, answer):
                self._add(query, place, answer, STAYED)
            now.append(answer if news else was)
        return now

    def add(self, query: int, answers: Sequence[dict[str, Any]], sign: int, reason: int | None = None) -> None:
        """Add all answers of a query."""
        for place, answer in enumerate(answers):
            self._add(query, place, answer, sign, reason)

    def _add(self, query: int, place: int, answer: dict[str, Any], sign: int, reason: int | None = None) -> None:
        name = " ".join([str(place + 1), answer["question"], *answer["features"]])
        self._rows.append((query, name, answer, sign, self._reason(query) if reason is None else reason))

    def _reason(self, query: int) -> int:
        applied = self._control.applied
        if query in applied.failed:
            return FAILED
        if query in applied.cancelled:
            return CANCELLED
        if query in applied.changed:
            return EDITED if query in self._control.before.sketch_plans else REGISTERED
        return MOVED

    def table(self) -> pa.Table:
        """Return the tuples."""
        space = self._control.after.space
        schema = result_schema(space)
        if not self._rows:
            return schema.empty_table()
        query, keys, answers, sign, reason = zip(*self._rows, strict=True)
        columns = {
            "query": np.array(query, dtype=np.int64),
            "sign": np.array(sign, dtype=np.int8),
            "reason": np.array(reason, dtype=np.int8),
            "key": pa.array(keys, pa.string()),
            "key_hash": key_hashes("", keys),
            "time_us": np.full(len(keys), self._control.now_us),
            "bounds": bounds_array(np.tile(space.whole(), (len(keys), 1))),
            "properties": pa.array([orjson.dumps(answer).decode() for answer in answers], pa.string()),
            "partner_hash": np.zeros(len(keys), dtype=np.int64),
        }
        return pa.table([columns.get(one.name, pa.nulls(len(keys), one.type)) for one in schema], schema=schema)

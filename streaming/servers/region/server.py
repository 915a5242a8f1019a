"""The regional server: keeps the objects in its part of the space and the answers that they belong to.

References
----------
PLACE* (2007), section 3.2: an answer is kept incrementally, by positive and negative tuples.
BBoxDB Streams (2022), section 4.5: continuous queries run where the distribution region of the element is kept.
"""

from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.runs import find
from streaming.results import (
    result_schema,
)
from streaming.servers.answers.changes import compared
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import worth_telling
from streaming.servers.answers.recipients import Recipients
from streaming.servers.answers.tuples import Results, TupleWriter
from streaming.servers.control.step import ControlStep
from streaming.servers.region.objects import Objects
from streaming.servers.region.reevaluation import Reevaluation
from streaming.servers.region.state import ObjectChanges, Region


def step(changed: ObjectChanges, passing: pa.Table, control: ControlStep) -> tuple[Region, Results]:
    """Apply the control entries, then the updates, of one micro-batch.

    Parameters
    ----------
    changed : ObjectChanges
    passing : pyarrow.Table
        As in `ObjectInput`.
    control : ControlStep

    Returns
    -------
    region : Region
    results : Results
        At most one tuple per (query, object, partner), except for queries that emit all. A tuple of an object that
        departed to another region has the reason ``handoff`` and must be netted with the tuples of that region.
    """
    region, cold, objects = changed.was, changed.cold, changed.objects
    region = region.without(control.applied.forgotten)
    before, after, applied, failures = control.before, control.after, control.applied, Failures()
    reevaluation = Reevaluation(before, after, applied, changed.touched, objects, failures)
    inside = reevaluation.covers(region.pair_key, region.pair_answer)
    rest = ~inside
    old = Answers(region.pair_key[inside], region.pair_answer[inside], region.pair_partner[inside])
    new, told = reevaluation.evaluated(cold)
    new = reevaluation.with_kept(old, new)
    recipients = reevaluation.recipients
    changes = _changes(reevaluation, reevaluation.recipients_before.told(old), recipients.told(new), changed)
    writer, began = TupleWriter(changed.known, cold, changed.departures, before, after), perf_counter()
    rows = [writer.rows(changes), writer.rows(recipients.told(told))]
    failures.share(recipients.answers_of(changes.query), perf_counter() - began, after.answers)
    rows.append(_passing(passing, writer, recipients, failures))
    position = np.searchsorted(region.pair_key[rest], new.key)
    pair_key = np.insert(region.pair_key[rest], position, new.key)
    pair_answer = np.insert(region.pair_answer[rest], position, new.query)
    pair_partner = np.insert(region.pair_partner[rest], position, new.partner)
    state = Region(objects, cold, pair_key, pair_answer, pair_partner, control.now_us)
    snapshots = _snapshots(applied.snapshots, state, reevaluation, writer)
    cold, objects = cold.compacted(objects)
    table = pa.concat_tables(rows)
    shared, told_rows = recipients.shared_in(table["query"].to_numpy())
    counters = {"objects": len(objects), "results": told_rows}
    errors, seconds = (_of_queries(told, after) for told in (failures.errors, failures.seconds))
    results = Results(table, snapshots, counters, errors, shared, seconds=seconds)
    return replace(state, objects=objects, cold=cold), results


def _of_queries(told, registry):
    """Return by query what is given by answer."""
    if not told:
        return {}
    answers = np.unique(np.array(list(told), dtype=np.int64))
    of, query = registry.columns.queries_of(answers)
    return dict(
        sorted((number, told[answer]) for number, answer in zip(query.tolist(), answers[of].tolist(), strict=True))
    )


def _changes(reevaluation, old, new, changed):
    """Compare old and new answers; return the changes to report."""
    both = compared(old, new)
    fate = changed.fate[np.searchsorted(changed.known.key_hash, both.key)]
    changes = reevaluation.explained(
        replace(both, reason=reevaluation.reasons(both, fate)), changed.was.objects, changed.cold
    )
    touched = find(reevaluation.touched, both.key)[1]
    return changes.take(worth_telling(changes, touched, reevaluation.before, reevaluation.after))


def _passing(passing, writer, recipients, failures):
    """Return the tuples of superseded elements, for the queries that emit all."""
    registry = writer.after
    if not passing.num_rows or registry.keep_all:
        return result_schema(registry.space).empty_table()
    objects = Objects.arrived(passing, -1)
    elements = Elements(objects.stream, objects.bounds, lambda rows: passing.take(pa.array(rows)))
    pairs = registry.queries.match(elements, registry.features, failures)
    pairs = pairs.take(~registry.keep(pairs.query))
    told = recipients.told(Answers.of(pairs, np.arange(len(objects))))
    answers = replace(told, key=objects.key_hash[told.key])
    return writer.table(answers, objects.take(told.key), passing.take(pa.array(told.key)))


def _snapshots(queries, state, reevaluation, writer):
    """Return the whole answers of `queries`."""
    after = reevaluation.after
    asked = after.columns.chosen(np.array(queries, dtype=np.int64))
    wanted = asked.ordered_answer
    chosen = np.flatnonzero(np.isin(state.pair_answer, wanted)) if len(wanted) else np.empty(0, np.int64)
    if not len(chosen):
        return result_schema(after.space).empty_table()
    key, answer, partner = state.pair_key[chosen], state.pair_answer[chosen], state.pair_partner[chosen]
    recipients = Recipients(asked, asked.query)
    members = reevaluation.measured(Answers(key, answer, partner, np.full(len(key), np.nan)), state.cold)
    return writer.snapshot(recipients.told(members), state.objects, state.cold)

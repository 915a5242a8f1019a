"""The regional server: keeps the objects in its part of the space and the answers that they belong to.

References
----------
PLACE* (2007), section 3.2: an answer is kept incrementally, by positive and negative tuples.
BBoxDB Streams (2022), section 4.5: continuous queries run where the distribution region of the element is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streaming.operators.allowance import PairAllowance
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.runs import distinct, find
from streaming.results import STAYED, result_schema
from streaming.servers.answers.changes import changed_objects, compared
from streaming.servers.answers.members import Answers
from streaming.servers.answers.reasons import worth_telling
from streaming.servers.answers.recipients import Recipients
from streaming.servers.answers.tuples import Results, TupleWriter
from streaming.servers.control.border import refuse
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.objects import Objects
from streaming.servers.region.reevaluation import Reevaluation
from streaming.servers.region.state import ObjectChanges, Region

V = TypeVar("V")


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
    before, after, applied = control.before, control.after, control.applied
    failures = Failures(PairAllowance(0, len(changed.objects), after.region_map.regions))
    pairs = changed.was.pairs.without(applied.forgotten)
    reevaluation = Reevaluation(before, after, applied, changed, failures)
    members = reevaluation.members(pairs)
    covered = reevaluation.covers(members)
    old, rest = members.take(covered), members.take(~covered)
    new, told = reevaluation.evaluated()
    refuse(_of_queries(failures.settled(after.columns.owners_of), after))
    new = reevaluation.with_kept(old, new)
    recipients = reevaluation.recipients
    both = compared(reevaluation.recipients_before.told(old), recipients.told(new))
    changes = _explained(reevaluation, both, changed)
    writer, began = TupleWriter(changed.known, changed.cold, changed.departures, before, after), perf_counter()
    rows = [writer.rows(changes), writer.rows(recipients.told(told))]
    failures.share(recipients.answers_of(changes.query), perf_counter() - began, after.answers)
    rows.append(_passing(passing, writer, recipients, failures))
    pairs = _replaced(pairs, members, (rest, new), None if reevaluation.alters else both)
    snapshots = _snapshots(applied.snapshots, pairs, reevaluation, writer)
    refuse(
        _of_queries(failures.settled(after.columns.owners_of), after)
    )  # also for what `_passing` and snapshots compare
    state = Region(changed.objects.settled(), pairs.settled(), control.now_us, deadlines=changed.deadlines)
    table = pa.concat_tables(rows)
    shared, told_rows = recipients.shared_in(table["query"].to_numpy())
    counters = {"objects": len(state.objects), "results": told_rows}
    errors, seconds = _of_queries(failures.errors, after), _of_queries(failures.seconds, after)
    return state, Results(table, snapshots, counters, errors, shared, seconds=seconds)


def _replaced(pairs: MemberTable, old: Answers, parts: tuple[Answers, Answers], both: Answers | None) -> MemberTable:
    """Return the members of answers with the two `parts` in the place of `old`, which are all members of some objects.

    If no answer changes or ends, `both` has the changes of the members.
    """
    rest, new = parts
    more = pairs.of_objects(distinct(new.key[~find(old.key, new.key)[1]]))
    old, rest = (_together(members, more) for members in (old, rest))
    now = _together(rest, new)
    changed = changed_objects(old, now) if both is None else distinct(both.key[both.sign != STAYED])
    return pairs.replaced(old, now, changed)


def _together(members: Answers, more: Answers) -> Answers:
    """Return members, ordered by key, and more of them."""
    if not len(more.key):
        return members
    columns = (np.r_[getattr(members, name), getattr(more, name)] for name in ("key", "query", "partner"))
    both = Answers(*columns)
    return both.take(np.argsort(both.key, kind="stable"))


def _of_queries(told: Mapping[int, V], registry: Registry) -> dict[int, V]:
    """Return by query what is given by answer."""
    if not told:
        return {}
    answers = np.unique(np.array(list(told), dtype=np.int64))
    of, query = registry.columns.queries_of(answers)
    return dict(
        sorted((number, told[answer]) for number, answer in zip(query.tolist(), answers[of].tolist(), strict=True))
    )


def _explained(reevaluation: Reevaluation, both: Answers, changed: ObjectChanges) -> Answers:
    """Return those of the differences between the old and the new answers that are reported, with their reasons."""
    changes = reevaluation.explained(replace(both, reason=reevaluation.reasons(both, changed.fates(both.key))))
    touched = find(changed.touched, both.key)[1]
    return changes.take(worth_telling(changes, touched, reevaluation.before, reevaluation.after))


def _passing(passing: pa.Table, writer: TupleWriter, recipients: Recipients, failures: Failures) -> pa.Table:
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


def _snapshots(queries: Sequence[int], pairs: MemberTable, reevaluation: Reevaluation, writer: TupleWriter) -> pa.Table:
    """Return the whole answers of `queries`."""
    after = reevaluation.after
    asked = after.columns.chosen(np.array(queries, dtype=np.int64))
    members = pairs.of_answers(np.unique(asked.answer))
    if not len(members.key):
        return result_schema(after.space).empty_table()
    recipients = Recipients(asked, asked.query)
    members = reevaluation.measured(replace(members, distance=np.full(len(members.key), np.nan)))
    return writer.snapshot(recipients.told(members), reevaluation.changed.objects, reevaluation.changed.cold)

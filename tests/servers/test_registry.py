"""Which queries a registry lets a region answer by itself."""

import numpy as np
import orjson
import pyarrow as pa

from streaming.servers.control.registrations import SCHEMA, level_of, level_table
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH

AREA = {"lo": [0, 0], "hi": [1, 1]}
PLANS = {
    1: {"area": AREA},
    2: {"area": AREA, "emit": "membership"},
    3: {"kind": "join", "join": {"layer": "ports"}},
    4: {"kind": "join", "join": {"stream": "tugs"}, "emit": "membership"},
    5: {"around": {"key": "a", "radius": 5}, "emit": "membership"},
    6: {"kind": "knn", "k": 3, "around": {"at": [1, 2]}},
    7: {"area": AREA, "aggregate": {"function": "count"}},
    8: {"around": {"key": "a", "stream": "tugs", "radius": 5}, "aggregate": {"function": "avg", "property": "speed"}},
}


def registered():
    """Return a registry of one query of each kind."""
    plans = {query: {"stream": "ships"} | plan for query, plan in PLANS.items()}
    entries = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans.items()]
    registry, applied = Registry(EARTH).apply(entries)
    assert not [ack for ack in applied.acks if ack["error"]]
    return registry


def test_queries_that_move_or_need_the_assembler_are_apart_as_joins_with_streams_are():
    registry = registered()
    assert registry.distributed_ids.tolist() == [5, 6, 7, 8]
    assert registry.stream_ids.tolist() == [4]
    assert set(registry.answers) == {registry.registrations[query].answer for query in (1, 2, 3)}


def test_quiet_are_the_queries_that_emit_membership_under_each_of_their_numbers():
    registry = registered()
    answers = [registry.registrations[query].answer for query in PLANS]
    names = np.array([*PLANS, *answers, 9])
    assert names[registry.quiet(names)].tolist() == [2, 4, 5, *(answers[query - 1] for query in (2, 4, 5))]
    assert not Registry(EARTH).quiet(names).any()


def stored(registry, known=None):
    """Return a registry after it was written and read, by a process that knows another one."""
    tables = {level.number: level_table(level) for level in registry.registrations.levels}
    head = orjson.loads(orjson.dumps(registry.head()))
    known = known or Registry(EARTH)
    same = {level.number: level for level in known.registrations.levels}
    return known.restored(head, [same.get(n) or level_of(n, tables[n], EARTH) for n in head["levels"]])


def test_a_registry_is_read_as_it_was_written():
    registry = registered()
    assert stored(registry) == registry


def test_an_aggregate_has_another_answer_than_its_range():
    registry = registered()
    assert registry.registrations[1].answer != registry.registrations[7].answer


def test_a_snapshot_is_due_only_of_a_query_that_is_known():
    asked = {"op": "snapshot", "query": 1}
    registry, applied = Registry(EARTH).apply([asked])
    assert applied.snapshots == ()
    plan = {"stream": "ships"} | PLANS[1]
    registry, applied = registry.apply([asked, {"op": "register", "query": 1, "revision": 1, "plan": plan}])
    assert applied.snapshots == (1,)
    assert registry.apply([asked])[1].snapshots == (1,)


def test_a_plan_that_is_refused_by_now_ends_its_query_and_no_other():
    registry = registered()
    (level,) = registry.registrations.levels
    rows = level_table(level).to_pylist()
    rows[0]["plan"] = rows[0]["plan"].replace(b'"where":""', b'"where":"never (a filter"')
    read = level_of(level.number, pa.Table.from_pylist(rows, schema=SCHEMA), EARTH)
    registry = Registry(EARTH).restored(registry.head(), [read])
    assert registry.registrations[1].plan is None
    assert list(registry.refused) == [1]
    assert stored(registry) == registry
    assert set(registry.ids) == set(PLANS) - {1}


def owned(*rows):
    """Return a registry of range queries in one area, given the number, the revision and the owner of each."""
    plan = {"stream": "ships", "area": AREA}
    named = ({"query": query, "revision": revision, "plan": plan, "owner": owner} for query, revision, owner in rows)
    return Registry(EARTH).apply([{"op": "register"} | entry for entry in named])[0]


def owners(registry, *names):
    of, owner = registry.columns.owners_of(np.array(names, dtype=np.int64))
    return sorted(zip(of.tolist(), owner.tolist(), strict=True))


def test_an_answer_counts_for_the_owners_of_all_queries_that_share_it():
    registry = owned((1, 1, 7), (2, 1, -3), (4, 1, 7))
    answer = registry.registrations[1].answer
    assert owners(registry, 2, answer, 1) == [(0, -3), (1, -3), (1, 7), (1, 7), (2, 7)]
    assert owners(registry.without([2]), answer) == [(0, 7), (0, 7)]


def test_a_query_that_is_given_to_a_team_counts_for_the_team():
    assert owners(owned((1, 1, 7), (1, 2, -3)), 1) == [(0, -3)]
    assert owners(owned((1, 1, 7), (1, 1, -3)), 1) == [(0, 7)]


def test_queries_without_an_owner_and_those_that_an_earlier_release_stored_count_for_nobody():
    assert owners(registered(), 1, 3) == [(0, 0), (1, 0)]
    registry = owned((1, 1, 7), (2, 1, 7))
    assert owners(stored(registry), 1) == [(0, 7)]
    (level,) = registry.registrations.levels
    older = level_of(level.number, level_table(level).drop_columns("owner"), EARTH)
    assert owners(Registry(EARTH).restored(registry.head(), [older]), 1, 2) == [(0, 0), (1, 0)]

"""A registry that grew change by change equals one made at once, whatever the changes, and one that was stored."""

import random
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import stream_number
from streaming.layers.features import feature_table
from streaming.operators import levelling, range_query
from streaming.operators.continuous_queries import ContinuousQueries
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.features import Features, ordered
from streaming.operators.layer import LayerVersion
from streaming.plans import together
from streaming.servers.answers.members import Answers
from streaming.servers.answers.recipients import Recipients
from streaming.servers.control import registry as control
from streaming.servers.control.levels import Level, Levels
from streaming.servers.control.registrations import level_of, level_table
from streaming.servers.control.registry import Registry
from streaming.spaces import EARTH
from tests.draws import examples, rngs, times
from tests.oracle import satisfies

ZONES = {
    version: LayerVersion.of(
        Features(
            ordered(
                feature_table(
                    "zones", list("xyz"), [shapely.box(x, x, x + 2, x + 2) for x in (0, version, 5)], [{}] * 3
                )
            ),
            EARTH,
        )
    )
    for version in (1, 2, 3)
}
QUERIES = range(1, 10)


def catalogue(_, version):
    return ZONES[version]


def random_plan(rng):
    """Return a plan of any kind; few differ, so that queries often share an answer, and answers come back."""
    x = rng.choice([0, 0, 1, 3])
    area = {"lo": [x, x], "hi": [x + 2, x + rng.choice([2, 4])]}
    emit = {"emit": rng.choice(["changes", "changes", "membership", "all"])}
    where = {"where": rng.choice(["", "", "speed > 3", "speed > 5"])}
    near = {"predicate": "dwithin", "distance": rng.choice([50_000, 120_000])}
    kind = rng.choice(["range"] * 5 + ["twofold"] + ["join"] * 4 + ["stream join", "moving", "knn", "aggregate"])
    return {"stream": rng.choice(["ships", "ships", "buses"])} | {
        "range": {"area": area, **emit, **where},
        "twofold": {"area": area, "transform": [{"enlarge_m": 60_000}], "compare": area, "report": "outside"},
        "join": {"kind": "join", "area": area, **emit, **where, "join": {"layer": "zones", **rng.choice([{}, near])}},
        "stream join": {"kind": "join", "join": {"stream": rng.choice(["ships", "tugs"]), **near}},
        "moving": {"around": {"key": rng.choice("ab"), "radius": 5}, **where},
        "knn": {"kind": "knn", "k": 3, "around": {"at": [1, x]}},
        "aggregate": {"area": area, "aggregate": {"function": "count"}},
    }[kind]


def random_entry(rng, revision):
    query, stream = rng.choice(QUERIES), rng.choice(["ships", "buses"])
    entries = {
        "register": {"query": query, "revision": revision, "plan": random_plan(rng)},
        "cancel": {"query": query, "revision": revision},
        "late": {"op": "register", "query": query, "revision": 0, "plan": random_plan(rng)},
        "layer": {"layer": "zones", "version": rng.choice(list(ZONES))},
        "drop_layer": {"layer": "zones"},
        "stream": {"stream": stream, "ttl_s": rng.choice([None, 5]), "stored": rng.random() < 0.5},
        "drop_stream": {"stream": stream},
        "tick": {"now_us": revision},
        "snapshot": {"query": query},
    }
    kind = rng.choice(["register"] * 12 + ["cancel"] * 4 + list(entries))
    return {"op": kind} | entries[kind]


def random_elements(rng):
    """Return elements, and the box and the properties of each."""
    rows = [
        (rng.choice(["ships", "buses"]), [x := rng.uniform(0, 6), y := rng.uniform(0, 6), -np.inf, x, y, np.inf])
        for _ in range(30)
    ]
    texts = [orjson.dumps({"speed": rng.randint(0, 9)}).decode() for _ in rows]
    streams = np.array([stream_number(stream) for stream, _ in rows], dtype=np.int64)
    cold = pa.table(
        {"key": [str(row) for row in range(30)], "properties": texts, "geometry": pa.nulls(30, pa.binary())}
    )
    elements = Elements(streams, np.array([box for _, box in rows]), lambda chosen: cold.take(pa.array(chosen)))
    return elements, [(*row, text) for row, text in zip(rows, texts, strict=True)]


def at_once(registry):
    """Return the registry of the queries that run, made from nothing at once, with one level."""
    told = {query: known for query, known in registry.registrations.items() if known.parsed}
    return Registry(EARTH, catalogue=catalogue).restored(registry.head() | {"levels": [0]}, [Level(0, told)])


def each_plan_has_a_number(registry):
    """Tell whether queries share the number of their answer exactly if their plans are equal."""
    told = [known for known in registry.registrations.values() if known.parsed]
    pairs = {(known.answer, known.parsed.text) for known in told}
    return len(pairs) == len({answer for answer, _ in pairs}) == len({text for _, text in pairs})


def pairs_of(pairs):
    return list(
        zip(
            pairs.row.tolist(),
            pairs.query.tolist(),
            pairs.partner.tolist(),
            np.nan_to_num(pairs.distance, nan=-1).round(6),
            strict=True,
        )
    )


def seen(registry, elements, apart):
    """Return all that servers see of a registry, in a form that can be compared."""
    names = np.array(sorted({*QUERIES, *registry.answer_of.tolist(), 77}), dtype=np.int64)
    answers, recipients, failures = np.unique(registry.answer_of), registry.recipients(apart), Failures()
    pairs = registry.queries.match(elements, registry.features, failures)
    told = recipients.told(Answers(answers, answers, answers))
    wrong = pairs.query[(pairs.row + 1) % len(pairs.row)] if len(pairs.row) else pairs.query
    asked = type(pairs)(pairs.row, np.sort(wrong), pairs.partner, pairs.distance)
    some = registry.answers[::2]
    joins = registry.stream_joins, registry.distributed
    return {
        "arrays": [registry.ids, registry.answer_of, registry.answers, registry.stream_ids, registry.distributed_ids],
        "tests": [registry.quiet(names), registry.measuring(names), registry.keep(registry.answers), registry.focal],
        "joins": [registry.joins_with({"zones"}), joins[0].keeps, joins[1].focal, joins[1].bordered],
        "plans": [registry.plan(query) for query in registry.ids.tolist()],
        "reach": sorted(registry.reach.ways.items(), key=repr),
        "rest": (registry.streams_in_full, registry.layers_joined, registry.leaves_out),
        "pairs": pairs_of(pairs),
        "costs": sorted(failures.seconds),
        "lies": [registry.queries.lies(elements, asked, registry.features)],
        "some": pairs_of(registry.queries.only(some).match(elements, registry.features)),
        "reached": [registry.queries.only(registry.joins_with({"zones"})).reached(elements.bounds, registry.features)],
        "told": sorted(zip(told.key.tolist(), told.query.tolist(), strict=True)),
        "names": [np.sort(recipients.names_of(answers)), recipients.answers_of(told.query)],
        "shared": recipients.shared_in(np.sort(told.query)),
    }


def same(one, other):
    """Compare what is seen of two registries, arrays by value."""
    for name, values in one.items():
        if isinstance(values, list) and values and isinstance(values[0], np.ndarray):
            for mine, its in zip(values, other[name], strict=True):
                assert mine.tolist() == its.tolist(), name
        else:
            assert values == other[name], name


def stored(registry, known):
    """Return a registry as a process reads it that knows another one."""
    tables = {level.number: level_table(level) for level in registry.registrations.levels}
    same = {level.number: level for level in known.registrations.levels}
    head = orjson.loads(orjson.dumps(registry.head()))
    return known.restored(
        head, [same.get(number) or level_of(number, tables[number], EARTH) for number in head["levels"]]
    )


def recipients_by_definition(registry, apart):
    """Return the names of each answer, and the queries of those that are shared, straight from the definition."""
    queries, names, shared = {}, set(), {}
    for query, answer in zip(registry.ids.tolist(), registry.answer_of.tolist(), strict=True):
        if query in apart:
            names.add((answer, query))
        else:
            queries.setdefault(answer, []).append(query)
    for answer, alike in queries.items():
        names.add((answer, answer if len(alike) > 1 else alike[0]))
        if len(alike) > 1:
            shared[answer] = tuple(alike)
    return sorted(names), shared


@pytest.mark.long
@examples(16)
@given(
    rngs(),
    st.sampled_from([1, 2, 32]),
    st.sampled_from([1, 3, 25_000]),
    st.sampled_from([1, 10_000]),
)
def test_a_registry_that_grew_by_changes_equals_one_made_at_once(rng, ratio, largest, kept):
    with (
        patch.object(levelling, "RATIO", ratio),
        patch.object(levelling, "LARGEST", largest),
        patch.object(control, "CANCELLED_KEPT", kept),
    ):
        registry = other = Registry(EARTH, catalogue=catalogue)
        for revision in range(1, 25):
            before = registry
            entries = [random_entry(rng, revision) for _ in range(rng.choice([0, 1, 1, 2, 8]))]
            registry, _ = before.apply(entries)
            assert each_plan_has_a_number(registry)
            if rng.random() < 0.3:
                read = stored(registry, rng.choice([other, Registry(EARTH, catalogue=catalogue)]))
                assert read == registry and read.ended.tolist() == registry.ended.tolist()
                registry, other = rng.choice([(read, registry), (registry, read)])
            if rng.random() < 0.2:
                continue  # so that some levels are merged before they are compiled
            whole = at_once(registry)
            elements, rows = random_elements(random.Random(rng.getrandbits(32)))
            apart = np.array(sorted(rng.sample(QUERIES, 2)), dtype=np.int64)
            same(seen(registry, elements, apart), seen(whole, elements, apart))
            names, shared = recipients_by_definition(registry, apart.tolist())
            assert seen(registry, elements, apart)["told"] == names
            assert (
                registry.recipients(apart).shared_in(np.array([name for _, name in names], dtype=np.int64))[0] == shared
            )
            left_out = set(rng.sample(QUERIES, 3))
            rest = sorted(set(registry.ids.tolist()) - left_out)
            same(
                seen(registry.without(left_out), elements, apart) | {"rest": 0, "reach": 0},
                seen(registry.only(rest), elements, apart) | {"rest": 0, "reach": 0},
            )
            check_matches(registry, elements, rows)


def check_matches(registry, elements, rows):
    """Compare the pairs of range queries with brute force."""
    plans = {registry.registrations[query].answer: registry.plan(query) for query in registry.ids.tolist()}
    ranges = {answer: plan for answer, plan in plans.items() if plan.kind == "range" and answer in registry.answers}
    expected = {
        (row, answer)
        for row, (stream, box, text) in enumerate(rows)
        for answer, plan in ranges.items()
        if satisfies(plan, stream, box, text)
    }
    pairs = pairs_of(registry.queries.match(elements, registry.features))
    assert pairs == sorted(pairs, key=lambda pair: pair[:3])
    assert {pair[:2] for pair in pairs if pair[1] in ranges} == expected


@given(rngs(), st.sampled_from([1, 2, 32]), st.sampled_from([1, 5, 25_000]))
def test_levels_are_a_mapping_in_the_order_in_which_entries_were_put(rng, ratio, largest):
    told, known, numbers = {}, Levels(), set()
    with patch.object(levelling, "RATIO", ratio), patch.object(levelling, "LARGEST", largest):
        for step in times(rng, 120):
            entries = {key: rng.choice([None, step, step]) for key in rng.sample(range(12), rng.randint(0, 3))}
            before, known = known, known.changed(entries)
            for key, value in entries.items():
                told.pop(key, None)
                if value is not None:
                    told[key] = value
            assert list(known.items()) == list(told.items())
            assert len(known) == len(told) == len(Levels(known.levels))
            assert [known.get(key) for key in range(12)] == [told.get(key) for key in range(12)]
            made = {level.number for level in known.levels if level not in before.levels}
            assert not made & numbers and len({level.number for level in known.levels}) == len(known.levels)
            numbers |= made


def test_levels_keep_little_of_what_is_removed_and_no_change_copies_them_all(monkeypatch):
    monkeypatch.setattr(levelling, "LARGEST", 50)
    rng, known, running, number = random.Random(1), Levels(), [], 0
    for step in range(2_000):
        put = list(range(number, number := number + rng.randint(1, 4)))
        running += put
        gone = [running.pop(rng.randrange(len(running))) for _ in range(len(running) - 400)]
        before, known = known, known.changed(dict.fromkeys(put, step) | dict.fromkeys(gone))
        assert sum(len(one.entries) for one in known.levels if one not in before.levels) <= 2 * 50 + 10
        assert sum(len(one.entries) for one in known.levels) <= 2.5 * len(known) + 2 * 50
        assert len(known.levels) <= 2.5 * 400 / 25 + 10
    assert sorted(known) == sorted(running)


def test_the_queries_that_ended_first_are_forgotten_first(monkeypatch):
    monkeypatch.setattr(control, "CANCELLED_KEPT", 2)
    registry = Registry(EARTH)
    for query in (3, 1, 2, 1, 4):
        revision = 1 + max((told.revision for told in registry.registrations.values()), default=0)
        plan = {"stream": "ships", "area": {"lo": [0, 0], "hi": [1, 1]}}
        registry, _ = registry.apply([{"op": "register", "query": query, "revision": revision, "plan": plan}])
        registry, _ = registry.apply([{"op": "cancel", "query": query, "revision": revision + 1}])
    assert list(registry.registrations) == registry.ended.tolist() == [1, 4]
    assert list(stored(registry, Registry(EARTH)).registrations) == [1, 4]


def test_a_process_that_missed_the_end_of_a_query_learns_it_even_if_the_query_is_forgotten(monkeypatch):
    monkeypatch.setattr(control, "CANCELLED_KEPT", 1)
    plan = {"stream": "ships", "area": {"lo": [0, 0], "hi": [1, 1]}}
    known, _ = Registry(EARTH).apply([{"op": "register", "query": q, "revision": 1, "plan": plan} for q in (1, 2, 3)])
    registry, _ = known.apply([{"op": "cancel", "query": query, "revision": 2} for query in (1, 2)])
    assert 1 not in registry.registrations
    assert stored(registry, known).ids.tolist() == registry.ids.tolist() == [3]


def test_a_join_that_ended_has_no_pairs_although_others_share_its_range_and_its_filter():
    plans = [
        {"stream": "ships", "kind": "join", "join": {"layer": "zones", "predicate": predicate, "where": where}}
        for predicate in ("intersects", "within", "disjoint")
        for where in ("", "NOT height IS NULL", "height IS NULL")
    ]
    plans += [plan | {"emit": "membership"} for plan in plans]
    entries = [{"op": "register", "query": n, "revision": 1, "plan": plan} for n, plan in enumerate(plans)]
    entries.insert(0, {"op": "layer", "layer": "zones", "version": 1})
    whole, _ = Registry(EARTH, catalogue=catalogue).apply(entries)
    elements, _ = random_elements(random.Random(3))
    assert whole.queries.match(elements, whole.features).row.any()
    for query in range(len(plans)):
        registry, _ = whole.apply([{"op": "cancel", "query": query, "revision": 2}])
        rest = registry.queries.only(registry.answers)
        failures, others = Failures(), Failures()
        pairs = pairs_of(registry.queries.match(elements, registry.features, failures))
        assert pairs == pairs_of(rest.match(elements, registry.features, others))
        assert failures.seconds.keys() == others.seconds.keys() == set(registry.answers.tolist())


@pytest.fixture
def compiled(monkeypatch):
    """Return the lists of plans that were compiled, and those of queries that were indexed."""
    made = {"plans": [], "indexed": []}
    real, index = ContinuousQueries.__init__, range_query.QueryIndex.__init__

    def compile_(self, plans, space):
        made["plans"].append(len(plans))
        real(self, plans, space)

    def index_(self, boxes, query):
        made["indexed"].append(len(query))
        index(self, boxes, query)

    monkeypatch.setattr(ContinuousQueries, "__init__", compile_)
    monkeypatch.setattr(range_query.QueryIndex, "__init__", index_)
    return made


def test_one_query_more_compiles_and_indexes_none_of_the_others(compiled):
    def plan(x):
        return {"stream": "ships", "area": {"lo": [x / 10, 0], "hi": [x / 10 + 1, 1]}}

    elements, _ = random_elements(random.Random(1))
    entries = [{"op": "register", "query": query, "revision": 1, "plan": plan(query)} for query in range(1000)]
    registry, _ = Registry(EARTH).apply(entries)
    registry.queries.match(elements, registry.features)
    for made in compiled.values():
        made.clear()
    for step, entry in enumerate(
        [{"op": "register", "plan": plan(-7)}, {"op": "register", "plan": plan(-8)}, {"op": "cancel"}]
    ):
        registry, _ = registry.apply([{"query": 5, "revision": 2 + step} | entry])
        registry.queries.match(elements, registry.features)
    assert compiled == {"plans": [1, 1], "indexed": [1, 1]}
    again, _ = registry.apply([{"op": "tick", "now_us": 1}])
    assert again is registry
    for query in range(1000, 1200):  # merges copy what is compiled
        registry, _ = registry.apply([{"op": "register", "query": query, "revision": 1, "plan": plan(query)}])
        registry.queries.match(elements, registry.features)
    assert set(compiled["plans"]) == {1}
    assert sum(size > 900 for size in compiled["indexed"]) <= 200 / 1000 * levelling.RATIO + 1


def test_no_merge_is_large_and_levels_are_few_however_many_queries_come_and_go(compiled, monkeypatch):
    monkeypatch.setattr(levelling, "RATIO", 4)
    monkeypatch.setattr(levelling, "LARGEST", 40)
    rng = random.Random(1)

    def register(query):
        area = {"lo": [query / 10, 0], "hi": [query / 10 + 1, 1]}
        return {"op": "register", "query": query, "revision": 1, "plan": {"stream": "ships", "area": area}}

    elements, _ = random_elements(rng)
    registry, _ = Registry(EARTH).apply([register(query) for query in range(100)])
    running, most = list(range(100)), []
    registry.queries.match(elements, registry.features)
    compiled["indexed"].clear()
    for query in range(100, 700):
        entries = [register(query)]
        if query > 400:
            ended = running.pop(rng.randrange(len(running)))
            entries.append({"op": "cancel", "query": ended, "revision": 2})
        running.append(query)
        registry, _ = registry.apply(entries)
        registry.queries.match(elements, registry.features)
        most.append(len(registry.queries.levels))
    assert registry.ids.tolist() == sorted(running)
    # The level that was made at once is copied when most of its queries have ended.
    assert max(compiled["indexed"]) <= 50 and sum(size > 40 for size in compiled["indexed"]) <= 1
    assert max(most) <= 2 * 400 / 40 + 4


def test_an_edited_layer_compiles_no_join(compiled, monkeypatch):
    join = {"stream": "ships", "kind": "join", "join": {"layer": "zones"}}
    registry, _ = Registry(EARTH, catalogue=catalogue).apply(
        [{"op": "register", "query": 1, "revision": 1, "plan": join}]
    )
    elements, _ = random_elements(random.Random(1))
    found = []
    for version in (1, 3):
        registry, _ = registry.apply([{"op": "layer", "layer": "zones", "version": version}])
        found.append(pairs_of(registry.queries.match(elements, registry.features)))
    assert compiled["plans"] == [1] and found[0] != found[1]


def test_plans_that_differ_in_their_boxes_are_parsed_once_and_equal_plans_are_one_object(monkeypatch):
    parsed, real = [], together.parse_plan
    monkeypatch.setattr(together, "parse_plan", lambda *asked: (parsed.append(1), real(*asked))[1])
    plans = [{"stream": "ships", "area": {"lo": [0, 0.12345], "hi": [1 + query % 2, 1]}} for query in range(50)]
    registry, _ = Registry(EARTH).apply(
        [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in enumerate(plans)]
    )
    read = stored(registry, Registry(EARTH))
    assert len(parsed) == 1
    assert len({id(told.parsed) for known in (registry, read) for told in known.registrations.values()}) == 2


def test_recipients_of_queries_that_do_not_run_are_none():
    recipients = Recipients(Registry(EARTH).columns, np.array([1]))
    assert not len(recipients.names_of(np.array([5])))
    assert recipients.answers_of(np.array([5])).tolist() == [0]

"""A query that emits membership tells the `+` and `-` of its twin that emits changes, and nothing else."""

import random
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from streaming.results import EDITED, ENTERED, LEFT, MOVED, QUIET_HANDOFF, REGISTERED, STAYED, events_of
from streaming.results.netting import net
from tests.servers import test_continuous_queries, test_joins, test_stream_joins
from tests.servers.harness import Client, Engine, one

TWIN = 1_000
AREA = {"lo": [-5, -5], "hi": [5, 5]}


class Twins(Engine):
    """Registers a twin beside each query, compares what both are told, and shows the queries alone.

    Parameters
    ----------
    *layout, **more
        As `Engine` takes them.
    reasons : set
        Takes the reasons of all changes.
    """

    def __init__(self, *layout, reasons, **more):
        super().__init__(*layout, **more)
        self.reasons = reasons

    def run(self, elements, control):
        twins = [self.twin(entry) for entry in control if entry["op"] in ("register", "cancel")]
        fragments = super().run(elements, [*control, *twins])
        for parts in (fragments, [events_of(fragment) for fragment in fragments]):
            told = net(parts).to_pylist()
            membership = [row for row in told if row["query"] < TWIN and row["sign"] != STAYED]
            assert in_order(row | {"query": row["query"] + TWIN} for row in membership) == in_order(
                row for row in told if row["query"] >= TWIN
            )
        self.reasons.update(code for fragment in fragments for code in fragment.changes["reason"].to_pylist())
        return [without_twins(fragment) for fragment in fragments]

    @staticmethod
    def twin(entry):
        plan = {"plan": entry["plan"] | {"emit": "membership"}} if "plan" in entry else {}
        return entry | {"query": entry["query"] + TWIN} | plan


def in_order(rows):
    return sorted(map(repr, rows))


def without_twins(fragment):
    """Return a fragment without what it says of twins."""
    shared = {answer: tuple(q for q in queries if q < TWIN) for answer, queries in fragment.shared.items()}
    shared = {answer: queries for answer, queries in shared.items() if queries}
    changes = fragment.changes
    mine = [query < TWIN or query in shared for query in changes["query"].to_pylist()]
    counters = {name: value for name, value in fragment.counters.items() if name != "results"}
    return replace(fragment, shared=shared, changes=changes.filter(pa.array(mine, pa.bool_())), counters=counters)


@pytest.mark.long
@pytest.mark.parametrize("histories", [test_continuous_queries, test_joins, test_stream_joins])
def test_twins_are_told_alike_but_for_what_stays_in_any_cut_and_layout(histories, monkeypatch):
    reasons = set()
    monkeypatch.setattr(histories, "Engine", partial(Twins, reasons=reasons))
    for seed in range(6):
        histories.play(random.Random(seed))
    assert QUIET_HANDOFF in reasons


@pytest.fixture
def engine(tmp_path):
    return Engine(tmp_path, 2, 4)


def ship(version, lon):
    return [("ships", 0, one("ships", "a", version, [lon, 1, 0, lon, 1, 0], {"version": version}))]


def register(revision, emit):
    plan = {"stream": "ships", "area": AREA, "emit": emit}
    return [{"op": "register", "query": 1, "revision": revision, "plan": plan}]


def told(client):
    rows = [(row["sign"], row["reason"], row["time_us"]) for row in client.told]
    client.told.clear()
    return rows


def test_an_object_that_crosses_a_border_is_told_when_it_enters_and_when_it_leaves(engine):
    client = Client()
    for version, lon in enumerate((-7, -1, 1, 2, 7)):
        fragments = engine.run(ship(version, lon), register(1, "membership") if version == 0 else [])
        if lon == 1:
            assert sorted(row["sign"] for part in fragments for row in part.changes.to_pylist()) == [LEFT, ENTERED]
        client.receive(fragments)
    assert told(client) == [(ENTERED, MOVED, 1), (LEFT, MOVED, 4)]


def test_an_object_that_crosses_a_border_and_leaves_the_answer_is_told_once(engine):
    client = Client()
    client.receive(engine.run(ship(1, -1), register(1, "membership")))
    client.receive(engine.run(ship(2, 7), []))
    assert [row[0] for row in told(client)] == [ENTERED, LEFT]


def test_an_edit_from_membership_to_changes_tells_where_all_is_that_stayed(engine):
    client = Client()
    client.receive(engine.run(ship(1, 1), register(1, "membership")))
    client.receive(engine.run(ship(2, 2), []))
    assert told(client) == [(ENTERED, REGISTERED, 1)]
    client.receive(engine.run([], register(2, "changes")))
    assert told(client) == [(STAYED, EDITED, 2)]
    client.receive(engine.run(ship(3, -2), register(3, "membership")))
    assert not told(client)

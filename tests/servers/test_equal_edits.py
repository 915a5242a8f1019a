"""An edit that leaves the plan of a query equal leaves what the engine knows of it, and tells nothing."""

import pytest

from streaming.kinds import registry as kinds
from streaming.plans import parse_plan
from streaming.results.netting import net
from tests.servers.test_border import GOOD, POISON, Fault, Sea, plan_of, registered

RULE, SLOW_RULE, WHOLE, SKETCH = 31, 32, 33, 34
PLANS = GOOD | {
    RULE: {"stream": "ships", "kind": "rule", "when": {"query": 1}},
    SLOW_RULE: {"stream": "ships", "kind": "rule", "when": {"query": 1}, "for_s": 2, "rearm_s": 2},
    WHOLE: {"stream": "ships", "kind": "rule", "when": {"count": {"query": 1, "above": 1}}},
    SKETCH: {"stream": "ships", "kind": "sketch", "ask": [{"question": "count"}]},
}
SKETCHED = {"op": "stream", "stream": "ships", "ttl_s": 3, "sketch": {"features": ["speed"]}}
LAST = 8


def edited(revision):
    """Return entries that give all queries to somebody else, and change nothing else."""
    return [entry | {"owner": revision} for entry in registered(PLANS, revision)]


def history(root, edits):
    """Return what is told after each step of a history, given the control entries of some steps."""
    sea, told = Sea(root, PLANS), []
    sea.control.append(SKETCHED)
    for step in range(1, LAST):
        sea.step(step, edits.get(step, ()))
        told.append(sorted(map(str, net(sea.fragments).to_pylist())))
        if step % 4 == 0:
            sea.engine.restart()
    return told


@pytest.mark.long
def test_whatever_the_kind_an_edit_that_leaves_the_plan_equal_tells_nothing_and_changes_nothing_later(tmp_path):
    alone = history(tmp_path / "alone", {})
    assert history(tmp_path / "edited", {3: edited(2), 5: edited(3) + edited(4), 6: edited(5)}) == alone
    assert sum(map(len, alone)) > 100


def test_every_kind_is_edited():
    assert {type(parse_plan(plan)) for plan in PLANS.values()} == {kind.plan_class for kind in kinds.KINDS}


def test_a_join_stays_driven_by_its_partners_if_an_edit_leaves_its_plan_equal(tmp_path):
    (query,) = (number for number, plan in GOOD.items() if plan.get("kind") == "interval_join")
    plan = GOOD[query] | {"join": GOOD[query]["join"] | {"stream": "buses"}}
    sea = Sea(tmp_path, {query: plan})
    sea.step(1)
    sea.step(2, [{"op": "drive", "query": query, "revision": 1, "by_partner": True}])
    for revision, told, driven in ((2, plan, {query}), (3, plan | {"upper_s": 1}, set())):
        sea.step(1 + revision, registered({query: told}, revision))
        registry = sea.engine.layout.store.registry(sea.engine.batch)
        assert (registry.by_partner, registry.revision(query)) == (driven, revision)


def test_who_cancels_a_query_and_registers_it_again_in_one_batch_has_it_begin_anew(tmp_path):
    sea = Sea(tmp_path, {1: GOOD[1]})
    for step in (1, 2):
        sea.step(step)
    sea.step(2, [{"op": "cancel", "query": 1, "revision": 2}, *registered({1: GOOD[1]}, 3)])
    assert {entry["revision"] for part in sea.fragments for entry in part.acks} == {2, 3}
    assert sea.engine.layout.store.registry(sea.engine.batch).runs(1)


def test_a_query_that_lacks_its_answer_is_tried_again_at_once_by_a_plan_that_is_saved_as_it_was(tmp_path, monkeypatch):
    fault, bad = Fault(monkeypatch, "evaluating"), {91: plan_of("range", POISON + 1)}
    sea = Sea(tmp_path, bad)
    sea.step(1)
    fault.on = True
    sea.step(2)
    assert sea.failures() and not sea.client.answers[91]
    fault.on = False
    sea.step(2, registered(bad, 2))
    assert not sea.failures() and sea.client.answers[91]

"""One query's failure is its own: the others are answered as if it were not there, and it comes back by itself."""

import random

import pytest
import shapely

from streaming.kinds import registry as kinds
from streaming.layers.features import feature_table
from streaming.operators import conditions
from streaming.plans import parse_plan
from streaming.results import FAILED, LEFT
from streaming.servers.answers import tuples
from streaming.servers.control.border import Border
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region import all_regions
from streaming.servers.region import server as regional
from streaming.servers.ways.encounters import assembler as encounters
from streaming.servers.ways.moving import aggregation, assembler, nearest, participant
from streaming.servers.ways.stream_joins import region as stream_join
from streaming.servers.ways.time_joins import pairing
from streaming.servers.ways.tracks import following as tracking
from streaming.spaces import EARTH
from tests.servers.harness import Client, Engine, one

AREA, SECOND_US = {"lo": [0, 0], "hi": [4, 4]}, 1_000_000
# Events of a step are a microsecond after those of the step before.
NEAR = {
    "join": {"stream": "ships", "predicate": "dwithin", "distance": 300_000},
    "emit": "all",
    "lateness_s": 0,
    "idle_s": 1,
}
KINDS = {
    "range": {"area": AREA},
    "every element": {"area": AREA, "emit": "all"},
    "join": {"kind": "join", "join": {"layer": "zones", "predicate": "dwithin", "distance": 90_000}},
    "stream join": {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 300_000}},
    "window join": {"kind": "window_join", "window_s": 1e-6, **NEAR},
    "interval join": {"kind": "interval_join", "lower_s": 0, "upper_s": 0, **NEAR},
    "encounter": {
        "kind": "encounter",
        "for_s": 0,
        "gap_s": 1e-6,
        "join": NEAR["join"],
        "lateness_s": 0,
        "idle_s": 1,
    },
    "closest approach": {"kind": "closest_approach", "within_m": 100_000, "within_s": 3_600},
    "approach": {"kind": "approach", "target": {"lo": [0, 0], "hi": [2.5, 2.5]}, "within_s": 3_600},
    "track": {"kind": "track", "area": AREA, "gap_s": 0},
    "moving range": {"around": {"key": "focal", "radius": 250_000}},
    "quiet range": {"around": {"key": "focal", "half_widths": [200_000, 200_000]}, "emit": "membership"},
    "knn": {"kind": "knn", "around": {"key": "focal"}, "k": 2},
    "aggregate": {"around": {"key": "focal", "radius": 250_000}, "aggregate": {"function": "count"}},
    "fixed aggregate": {"area": AREA, "aggregate": {"function": "max", "property": "speed", "group_by": "kind"}},
}
POISON = 666_000
# What looks at the answers of many queries together, and writes them.
STAGES = {
    "evaluating": [(conditions, "_passing")],
    "netting": [
        *((module, "compared") for module in (regional, stream_join, participant)),
        *((nearest, "_ranks"), (aggregation, "merged"), (encounters, "joined_spans"), (tracking, "in_turn")),
    ],
    "encoding": [
        *((module, "result_rows") for module in (tuples, stream_join, all_regions)),
        *((assembler, "group_rows"), (pairing, "pair_rows"), (encounters, "_result_rows"), (tracking, "event_rows")),
    ],
}


def plan_of(kind, limit):
    """Return a plan of a kind that no other query has: all ships are slower."""
    return {"stream": "ships", **KINDS[kind], "where": f"speed < {limit}"}


GOOD = {query: plan_of(kind, 1_000 + query) for query, kind in enumerate(KINDS, 1)}
BAD = {query + 90: plan_of(kind, POISON + query) for query, kind in enumerate(KINDS, 1)}
NO_ANSWER_KEPT = [query for query, plan in (GOOD | BAD).items() if plan.get("emit") == "all"]


class Fault:
    """Raises, while it is on, where bad queries are evaluated, netted or encoded."""

    def __init__(self, monkeypatch, stage):
        self.on = False
        for module, name in STAGES[stage]:
            monkeypatch.setattr(module, name, self.guarded(getattr(module, name), stage))

    def guarded(self, real, stage):
        def guarded(*asked):
            if self.on and (str(POISON)[:3] in str(asked[3]) if stage == "evaluating" else touched(asked[0])):
                raise RuntimeError("this cannot be")
            return real(*asked)

        return guarded


def touched(answers):
    if isinstance(answers, int):
        return answers in BAD
    queries = answers["query"].to_numpy() if hasattr(answers, "columns") else answers.query
    return not BAD.keys().isdisjoint(queries)


def ships(step):
    """Return where the ships of a step are: some rest, some go about, and all cross borders of regions now and then."""
    rng = random.Random(step)
    for key in ["focal", *(key for key in "abcdefgh" if rng.random() < 0.6)]:
        place = [rng.uniform(-2, 4), rng.uniform(-2, 4), 0]
        properties = {"speed": rng.randint(0, 9), "kind": rng.choice("ab")}
        properties |= {"speed_mps": 300.0, "course_deg": 40.0 * ord(key[0]) % 360}
        yield "ships", step * SECOND_US, one("ships", key, step, [*place, *place], properties)


def registered(plans, revision=1):
    return [{"op": "register", "query": query, "revision": revision, "plan": plan} for query, plan in plans.items()]


class Sea:
    """An engine with a client."""

    def __init__(self, root, plans, engine=Engine):
        self.engine, self.client, self.fragments = engine(root, 2, 4), Client(), []
        self.engine.may_fail = True
        zones = [shapely.box(x, x, x + 1, x + 1) for x in range(-1, 4)]
        version = self.engine.layers.write("zones", feature_table("zones", list("vwxyz"), zones, [{}] * 5))
        self.control = [{"op": "layer", "layer": "zones", "version": version}, *registered(plans)]

    def step(self, number, control=()):
        """Let ships move, and the clock go to a step; ask for answers that were lost."""
        asked = [{"op": "snapshot", "query": query} for query in sorted(self.client.lost)]
        tick = {"op": "tick", "now_us": number * SECOND_US}
        for query in NO_ANSWER_KEPT:
            self.client.answers[query].clear()
        self.fragments = self.engine.run([*ships(number)], [tick, *self.control, *control, *asked])
        self.client.receive(self.fragments)
        self.control = []

    def answers(self, plans):
        """The answers; of encounters only who meets, since one that begins anew has other reports."""
        answers = {query: dict(self.client.answers[query]) for query in plans}
        timed = {query for query, plan in plans.items() if plan.get("kind") == "encounter"}
        return {query: dict.fromkeys(answer) if query in timed else answer for query, answer in answers.items()}

    def failures(self):
        return {tuple(query): f["error"] for part in self.fragments for f in part.failures for query in f["queries"]}


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """Return the answers of the good queries after each step, where there are no others."""
    sea, answers = Sea(tmp_path_factory.mktemp("truth"), GOOD), {}
    for number in range(1, 10):
        sea.step(number)
        answers[number] = sea.answers(GOOD)
    return answers


@pytest.mark.long
@pytest.mark.parametrize("stage", STAGES)
def test_what_fails_in_some_queries_is_told_of_them_and_the_others_are_answered(tmp_path, monkeypatch, truth, stage):
    fault, sea, told = Fault(monkeypatch, stage), Sea(tmp_path, GOOD), {}
    for step in truth:
        fault.on = 3 <= step < 6
        sea.step(step, registered(BAD) if step == 2 else [])
        assert sea.answers(GOOD) == truth[step]
        assert fault.on or not sea.failures()
        told |= sea.failures()
        sea.engine.restart()
    concerned = BAD.keys() - (NO_ANSWER_KEPT if stage == "netting" else ())
    assert told == {(query, 1): "RuntimeError: this cannot be" for query in concerned}
    assert list(sea.answers(BAD).values()) == list(truth[9].values())


@pytest.mark.long
def test_an_answer_that_is_kept_ends_where_it_fails_and_an_edit_tries_the_query_at_once(tmp_path, monkeypatch):
    fault, kept = Fault(monkeypatch, "evaluating"), {q: BAD[q] for q in BAD if not {"around", "emit"} & BAD[q].keys()}
    sea = Sea(tmp_path, kept)
    for step in (1, 2, 3):
        sea.step(step)
    assert all(sea.answers(kept).values())
    fault.on = True
    sea.client.told.clear()
    for step in (4, 5, 6):
        sea.step(step)
    assert {(row["query"], row["sign"], row["reason"]) for row in sea.client.told} >= {(q, LEFT, FAILED) for q in kept}
    assert not sea.client.lost
    fault.on = False
    sea.step(6, registered(kept, revision=2))
    assert all(answer for query, answer in sea.answers(kept).items() if "for_s" not in kept[query])
    for step in (7, 8):  # encounters wait for event time
        sea.step(step)
    assert all(sea.answers(kept).values())


def test_every_kind_of_plan_is_tried():
    # Sketches and rules have no elements that a filter could fail on; test_sketch_queries.py has failures of sketches.
    filtered = {kind.plan_class for kind in kinds.KINDS if kind.name not in ("sketch", "rule")}
    assert {type(parse_plan(plan)) for plan in GOOD.values()} == filtered


class Steps:
    """The batches of a server whose step raises of some queries."""

    def __init__(self):
        self.registry = Registry(EARTH).apply(registered(GOOD))[0]
        self.left_out, self.taken = {}, 0

    def take(self, now_s, *raising, error=KeyError):
        border = Border(ControlStep(self.registry, self.registry, Applied(), now_s * SECOND_US), self.left_out)

        def step(control):
            self.taken += 1
            if set(raising) & set(control.after.ids):
                raise error(1)
            return control.after.ids.tolist()

        evaluated = border.passed(step)
        self.left_out = border.left_out
        return set(GOOD) - set(evaluated), set(border.errors)


def test_a_query_that_goes_on_failing_is_tried_after_pauses_that_double_up_to_a_minute():
    steps = Steps()
    tried = [now_s for now_s in range(300) if steps.take(now_s, 3)[1]]
    assert tried == [0, 2, 6, 14, 30, 62, 122, 182, 242]
    assert steps.take(302) == (set(), set())
    assert steps.take(303, 3) == ({3}, {3})
    assert steps.left_out[3].until_us == 305 * SECOND_US


def test_a_step_is_taken_a_few_times_more_in_the_batch_in_which_a_query_fails_and_once_in_others():
    steps = Steps()
    steps.take(0)
    assert steps.taken == 1
    steps.take(1, 5)
    assert steps.taken < 1 + 2 + 2 * 6
    steps.taken = 0
    assert steps.take(2, 5) == ({5}, set())
    assert steps.taken == 1


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_what_the_machine_lacks_fails_the_batch(error):
    with pytest.raises(error):
        Steps().take(0, 3, error=error)


def test_what_fails_without_any_query_fails_the_batch(monkeypatch):
    border = Border(ControlStep(*[Registry(EARTH)] * 2, Applied(), 0), {})
    with pytest.raises(ZeroDivisionError):
        border.passed(lambda control: 1 / 0)


def test_queries_with_one_answer_fail_together():
    steps = Steps()
    steps.registry = steps.registry.apply(registered({50: GOOD[3]}))[0]
    assert steps.take(0, 50)[1] == {3, 50}

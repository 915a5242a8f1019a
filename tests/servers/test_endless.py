"""A query whose evaluation never ends is found from outside and left out; the others are answered as without it.

Here a step that does not end raises `Endless`, which no border catches, and stands for the kill of its process.
"""

import random
from collections import defaultdict

import pytest

from streaming.elements import partition_of, to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.layout import Layout
from streaming.engine.quarantine import read_quarantine, write_quarantine
from streaming.engine.slots import Slot, named_steps
from tests.servers.harness import Engine
from tests.servers.test_border import (
    BAD,
    GOOD,
    KINDS,
    POISON,
    SECOND_US,
    STAGES,
    Fault,
    Sea,
    registered,
    ships,
    touched,
    truth,
)

__all__ = ["truth"]

LIMIT_S, TASKS, MOST_ENDS = 60.0, 2, 30
KIND_OF, GOOD_OF = dict(zip(BAD, KINDS, strict=True)), dict(zip(BAD, GOOD, strict=True))


def plain(fragment):
    """Return what a fragment tells, without what was measured."""
    return fragment.changes.to_pylist(), fragment.snapshots.to_pylist(), fragment.failures, fragment.counters


class Endless(BaseException):
    """A step that does not end."""


class Hostile(Fault):
    """What the bad queries have in common: while it is on, a step that evaluates, nets or encodes them does not end."""

    def __init__(self, monkeypatch, root):
        self.on, self.root, self.named = False, root, []
        for stage in STAGES:
            for module, name in STAGES[stage]:
                monkeypatch.setattr(module, name, self.guarded(getattr(module, name), stage))

    def guarded(self, real, stage):
        def guarded(*asked):
            if self.on and (str(POISON)[:3] in str(asked[3]) if stage == "evaluating" else touched(asked[0])):
                self.named = named_steps(self.root)
                raise Endless
            return real(*asked)

        return guarded


class WatchedEngine(Engine):
    """Runs batches as an engine that a watchdog ends: two tasks in some order, each of which tells all at once."""

    def __init__(self, *arguments, seed=0, **more):
        super().__init__(*arguments, saved_every=1, **more)
        self.rng, self.told, self.hostile, self.ends = random.Random(seed), {}, None, 0
        self.forget()

    def forget(self):
        """Start again: read the quarantine."""
        kept = self.layout
        if kept.slot:
            kept.slot.close()
        quarantine = read_quarantine(kept.store.files)
        self.layout = Layout(self._store(), kept.partitions, kept.history, quarantine, Slot(self.root))

    def run(self, elements, control):
        """Run a batch, however often the engine has to end for it; return what was told first."""
        control = self._rescale(control)
        while True:
            try:
                self._attempt(elements, control)
            except Endless:
                self.ends += 1
                assert self.ends < MOST_ENDS
                self._end()
            else:
                return [told for (batch, _), told in sorted(self.told.items()) if batch == self.batch - 1]

    def _end(self):
        """Write down what did not end, and start the next engine."""
        (step,) = [step for step in self.hostile.named if step.batch == self.batch]
        files, told = self.layout.store.files, {region: batch for batch, region in sorted(self.told)}
        found = read_quarantine(files).noticed(step, LIMIT_S)
        write_quarantine(files, found.settled("", self.batch - 1, told, self.layout.partitions))
        self.forget()

    def _attempt(self, elements, control):
        saving, inputs = Saving(self.batch - 1), defaultdict(list)
        for partition in range(self.layout.partitions):
            for sent in home_task(
                self.layout, partition, self.batch, self._blocks(elements, partition), control, saving
            ):
                inputs[sent.region].append(sent)
        for task in self.rng.sample(range(TASKS), TASKS):
            made = [
                fragment
                for number in inputs
                if number % TASKS == task
                for fragment in region_task(self.layout, number, self.batch, inputs[number], control, saving)
            ]
            for fragment in made:
                known = self.told.setdefault((self.batch, fragment.region), fragment)
                assert plain(known) == plain(fragment), "what was told does not change when a batch runs again"
        self.saved, self.batch = self.batch, self.batch + 1
        self.upkeep.sync()
        self.upkeep.clean()

    def _blocks(self, elements, partition):
        for stream, heard_us, table in elements:
            mine = table.filter(partition_of(table["key_hash"].to_numpy(), self.layout.partitions) == partition)
            yield IngestBlock(stream, heard_us, to_ipc(mine))


def refused(fragments):
    """Return the queries, and their revisions, that fragments say have ended."""
    failures = (failure for part in fragments for failure in part.failures if failure.get("refused"))
    return {tuple(query) for failure in failures for query in failure["queries"]}


@pytest.fixture
def watched(tmp_path):
    """The sea with the good queries, and an engine that is watched."""
    sea = Sea(tmp_path, GOOD, WatchedEngine)
    yield sea
    sea.engine.layout.slot.close()


@pytest.mark.long
@pytest.mark.parametrize(
    ("begins", "kinds"),
    [(2, ("range", "knn")), (3, ("stream join", "track")), (4, ("aggregate", "encounter", "every element"))],
    ids=lambda value: " and ".join(value) if isinstance(value, tuple) else None,
)
def test_what_never_ends_is_left_out_and_all_others_are_answered_exactly(watched, monkeypatch, truth, begins, kinds):
    bad, engine, told = {query: BAD[query] for query in BAD if KIND_OF[query] in kinds}, watched.engine, set()
    engine.rng = random.Random(begins)
    hostile = engine.hostile = Hostile(monkeypatch, engine.root)
    for step in truth:
        hostile.on = begins <= step < 8
        watched.step(step, registered(bad, step) if step in (begins - 1, 8) else [])
        assert watched.answers(GOOD) == truth[step]
        assert {query for query, _ in watched.failures()} <= bad.keys()
        told |= refused(watched.fragments)
        engine.restart()
        if step in (begins + 1, begins + 2):
            engine.rewind()
            engine.run([*ships(step)], [{"op": "tick", "now_us": step * SECOND_US}])
    assert told == {(query, begins - 1) for query in bad}
    assert engine.ends > len(bad)
    again = watched.answers({query: plan for query, plan in bad.items() if KIND_OF[query] != "encounter"})
    assert again == {query: truth[9][GOOD_OF[query]] for query in again}

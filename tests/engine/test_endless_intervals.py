"""A query that does not end stops the tasks of intervals, wherever crashes let them continue; answers stay exact."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from streaming.engine.layout import Layout
from streaming.engine.quarantine import read_quarantine, write_quarantine
from streaming.engine.slots import NamedStep, Slot
from streaming.engine.store import Store
from streaming.engine.watchdog import settle
from streaming.history import HistoryWriter
from streaming.operators import conditions
from streaming.spaces import EARTH
from streaming.state.stores import LocalStore
from tests.engine.test_intervals import REGIONS, Machine, answers, feed, often, one_by_one, run_all

HOSTILE, LIMIT_S = 90, 60.0
PLAN = {"stream": "ships", "compare": {"lo": [-9, -9], "hi": [9, 9]}, "where": "speed < 666000"}


class Endless(BaseException):
    """A step that does not end, until a watchdog ends its process."""


class NotedSlot(Slot):
    """Also notes the step of the thread, which here stands for a process."""

    here = threading.local()

    def begin(self, batch, place, answers, queries):
        super().begin(batch, place, answers, queries)
        self.here.step = NamedStep(0, 0, batch, place, answers, tuple(queries), True, False)


class WatchedMachine(Machine):
    """Ends the engine when a step does not end, as the watchdog does."""

    def __init__(self, *arguments):
        self.endless, self.ends, self.slots = [], 0, []
        super().__init__(*arguments)

    def resume(self):
        files = LocalStore(self.root)
        super().resume()
        if self.endless:
            found = read_quarantine(files)
            for step in self.endless:
                found = found.noticed(step, LIMIT_S)
            write_quarantine(files, replace(found, epoch=Store(self.root, EARTH, files=files).epoch()))
            self.ends, self.endless = self.ends + 1, []
        settle(self.settings, files, self.log, self.point.batch)

    def layout(self, task, anew=False):
        if anew or task not in self.layouts:
            files, slot = LocalStore(self.root), NotedSlot(self.root)
            self.slots.append(slot)
            store, history = (
                Store(self.root, EARTH, files=files, regions=REGIONS),
                HistoryWriter(self.root / "history", EARTH),
            )
            self.layouts[task] = Layout(store, self.partitions, history, read_quarantine(files), slot)
        return self.layouts[task]

    def task(self, task, trouble, stopped):
        try:
            return super().task(task, trouble, stopped)
        except Endless:
            self.endless.append(NotedSlot.here.step)
            return None


def with_hostile(log, begins):
    """Return a log to feed that also registers the hostile query at a step."""

    def send(op, **entry):
        log.send(op, **entry)
        if entry == {"now_us": begins * 1_000_000}:
            log.send("register", query=HOSTILE, revision=1, plan=PLAN)

    return SimpleNamespace(send=send, ingest=log.ingest)


@pytest.mark.long
@pytest.mark.separate_seeds(1, 2, 5, 6)
def test_tasks_that_crash_and_are_ended_for_a_query_give_the_others_the_answers_of_one_process(
    tmp_path, redis_client, redis_server, seed, monkeypatch
):
    often(monkeypatch)
    real = conditions._passing

    def passing(*asked):
        if "666000" in str(asked[3]):
            raise Endless
        return real(*asked)

    machine = WatchedMachine(tmp_path / "engine", redis_server, seed)
    feed(with_hostile(machine.log, 10 * seed), np.random.default_rng(seed))
    with monkeypatch.context() as hostile:
        hostile.setattr(conditions, "_passing", passing)
        run_all(machine, trouble=True)
    told = answers(machine.log)
    assert told == one_by_one(tmp_path / "truth", redis_server, machine.layout(0).store.epoch())
    assert len(told) == machine.point.batch + 1 > 40 and any(told)
    assert {one.query for one in read_quarantine(LocalStore(machine.root)).queries} == {HOSTILE}
    assert machine.ends >= 2
    for slot in machine.slots:
        slot.close()

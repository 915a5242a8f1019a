"""An engine continues after a power cut as if nothing had happened, whatever the disk kept of what was not synced."""

import shutil

import numpy as np
import pytest

from streaming.engine.cuts import CUTS, logs_read
from streaming.engine.housekeeping import Housekeeping
from streaming.eventlog import RedisEventLog
from streaming.state.files import make_folder
from streaming.state.stores import LocalStore
from tests.engine.test_intervals import PARTITIONS, Machine, answers, feed, often, one_by_one, run_all
from tests.house.test_embedded_redis import running
from tests.power.test_elements import after_a_cut, lookout_on

INTERVALS = 3


def housekeeping_of(machine):
    """Return what makes the states of a machine durable."""
    log = machine.log
    keys = logs_read(log.names, PARTITIONS)
    history = machine.root / "history" / "earth"
    return Housekeeping(LocalStore(machine.root), log, keys | {CUTS: log.names.cuts}, history)


@pytest.fixture
def untrimmed(monkeypatch):
    """Keep the logs, so that one process can run all batches again."""
    monkeypatch.setattr(RedisEventLog, "trim", lambda self, behind: None)


@pytest.mark.long
@pytest.mark.parametrize("kept", ["what was synced", "all state files"])
def test_an_engine_continues_with_exact_answers_after_a_power_cut(disk, kept, untrimmed, monkeypatch):
    often(monkeypatch)
    place = lookout_on(disk)
    make_folder(disk.root / "engine")
    with running(place) as client:
        machine = Machine(disk.root / "engine", place.redis_url, seed=7)
        feed(machine.log, np.random.default_rng(7))
        housekeeping = housekeeping_of(machine)
        for _ in range(INTERVALS):
            machine.interval(trouble=False)
            housekeeping.work()
        machine.interval(trouble=False)  # nothing of this was synced
        after = after_a_cut(disk, place)
        if kept == "all state files":
            shutil.copytree(machine.root, after.home / "engine", dirs_exist_ok=True)
        told = answers(machine.log)
        client.close()
    with running(after):
        known = Machine(after.home / "engine", after.redis_url, seed=8)
        assert 0 < known.point.batch < len(told) - 1
        run_all(known, trouble=False)
        again, epoch = answers(known.log), known.layout(0).store.epoch()
        assert again == one_by_one(after.home / "truth", after.redis_url, epoch)
        assert len(again) == known.point.batch + 1 > 40 and any(again)

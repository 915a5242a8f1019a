"""The watchdog and the slots: a step that does not end is noticed from another process, and only such a step."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from streaming.engine.quarantine import Suspicion, read_quarantine
from streaming.engine.slots import BYTES, FOLDER, MOST_QUERIES, Slot, end_processes, named_steps
from streaming.engine.watchdog import LONGEST_LOOK_S, Endless, StepWatch
from streaming.state.stores import LocalStore

LIMIT_S = 60.0
# A process that names a step, and then never returns to Python.
CHILD = """
import sys
from pathlib import Path
from streaming.engine.slots import Slot
slot = Slot(Path(sys.argv[1]))
slot.begin(7, 1, 1, [(9, 2), (10, 1)])
print(flush=True)
import re
re.fullmatch("(a|aa)+", "a" * 99 + "b")
"""


@pytest.fixture
def slot(tmp_path):
    own = Slot(tmp_path)
    yield own
    own.close()


@pytest.fixture
def child(tmp_path):
    """A process whose step does not end."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def end_in_a_step(root):
    """Leave what a process leaves that ends in a step."""
    slot = Slot(root)
    slot.begin(7, 1, 1, [(9, 2)])
    slot.close()


def watch_of(root):
    return StepWatch(root, LocalStore(root), "e", LIMIT_S)


def looks(watch, until_s, since_s=0.0):
    """Look once a second; return when the watch noticed something, None if it did not."""
    now_s = since_s
    while now_s <= until_s:
        try:
            watch.look(now_s)
        except Endless:
            return now_s
        now_s += 1.0
    return None


def test_a_step_is_named_with_its_queries_until_it_ends(tmp_path, slot):
    assert named_steps(tmp_path) == []
    slot.begin(7, 1, 2, [(9, 2), (10, 1)])
    (step,) = named_steps(tmp_path)
    assert step == (os.getpid(), 1, 7, 1, 2, ((9, 2), (10, 1)), True, False)
    slot.end()
    assert named_steps(tmp_path) == []
    slot.begin(8, -1, 0, [])
    assert named_steps(tmp_path) == [(os.getpid(), 2, 8, -1, 0, (), True, False)]


def test_more_queries_than_a_slot_has_room_for_are_said_to_be_more(tmp_path, slot):
    slot.begin(7, 1, 1, [(query, 1) for query in range(MOST_QUERIES + 1)])
    (step,) = named_steps(tmp_path)
    assert step.queries == tuple((query, 1) for query in range(MOST_QUERIES))
    assert not step.whole
    assert [path.stat().st_size for path in (tmp_path / FOLDER).iterdir()] == [BYTES]


def test_the_slot_of_a_process_that_ended_is_removed_once_it_has_said_in_which_step(tmp_path, child):
    (step,) = named_steps(tmp_path)
    assert (step.pid, step.fatal) == (child.pid, False)
    child.kill()
    child.wait()
    assert named_steps(tmp_path) == [step._replace(fatal=True)]
    assert named_steps(tmp_path) == []
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_the_processes_that_have_slots_are_ended_and_no_others(tmp_path, child):
    path = tmp_path / FOLDER / f"{os.getpid()}.left"
    path.write_bytes(bytes(BYTES))  # nobody holds its lock, so the number may be that of any process by now
    end_processes(tmp_path)
    assert child.wait() == -signal.SIGKILL


def test_a_step_that_does_not_end_is_noticed_after_its_time_although_it_never_returns_to_python(tmp_path, child):
    watch = watch_of(tmp_path)
    assert looks(watch, 200) == LIMIT_S
    found = read_quarantine(LocalStore(tmp_path))
    assert [(one.query, one.revision, one.batch, one.place) for one in found.queries] == [(9, 2, 7, 1), (10, 1, 7, 1)]
    assert found.epoch == "e"


def test_steps_that_follow_each_other_are_no_step_that_does_not_end_however_long_the_batch_takes(tmp_path, slot):
    watch = watch_of(tmp_path)
    for now_s in range(0, 1000, 50):
        slot.begin(7, 1, 0, [])
        assert looks(watch, now_s + 49, now_s) is None
    slot.end()
    assert looks(watch, 2000, 1000) is None


def test_a_step_that_is_stopped_by_a_signal_has_time(tmp_path, child):
    watch = watch_of(tmp_path)
    assert looks(watch, 40) is None
    os.kill(child.pid, signal.SIGSTOP)
    while psutil.Process(child.pid).status() != psutil.STATUS_STOPPED:
        time.sleep(0.01)
    assert looks(watch, 200, 41) is None
    os.kill(child.pid, signal.SIGCONT)
    while psutil.Process(child.pid).status() == psutil.STATUS_STOPPED:
        time.sleep(0.01)
    assert looks(watch, 300, 201) is not None


def test_a_step_in_which_processes_end_again_and_again_is_noticed_and_one_end_is_no_fault_of_it(tmp_path):
    end_in_a_step(tmp_path)
    watch = watch_of(tmp_path)  # of the next engine
    for now_s, noticed in ((0, None), (10, 10)):
        end_in_a_step(tmp_path)
        assert looks(watch, now_s + 5, now_s) == noticed
    assert [(one.query, one.fatal) for one in read_quarantine(LocalStore(tmp_path)).queries] == [(9, True)]


def test_the_time_in_which_nobody_looked_hardly_counts(tmp_path, slot):
    watch = watch_of(tmp_path)
    slot.begin(7, 1, 0, [])
    assert looks(watch, 10) is None
    assert looks(watch, 10_000, 10_000) is None
    assert looks(watch, 10_000 + LIMIT_S, 10_001) == 10_000 + LIMIT_S - 10 - LONGEST_LOOK_S


def test_what_has_not_ended_elsewhere_for_half_of_the_time_is_suspected_too(tmp_path, slot):
    others = [Slot(tmp_path), Slot(tmp_path)]
    watch = watch_of(tmp_path)
    slot.begin(7, 1, 0, [])
    assert looks(watch, 20) is None
    others[0].begin(7, 2, 0, [])
    assert looks(watch, 40, 21) is None
    others[1].begin(7, 3, 0, [])
    assert looks(watch, 100, 41) == LIMIT_S
    assert {one.place for one in read_quarantine(LocalStore(tmp_path)).suspicions} == {1, 2}
    for other in others:
        other.close()


def test_a_step_that_was_given_more_time_has_it(tmp_path, slot):
    slot.begin(7, 1, 0, [])
    assert [looks(watch_of(tmp_path), 500) for _ in range(3)] == [LIMIT_S, LIMIT_S, 2 * LIMIT_S]
    assert read_quarantine(LocalStore(tmp_path)).suspicions == (Suspicion(7, 1, 4 * LIMIT_S),)

"""One engine has a lease at a time, and who takes it over finds nobody left who writes."""

import contextlib
import os
import subprocess
import sys

import psutil
import pytest

from bench.live import PATIENCE_S, ROOT
from bench.processes import alive
from streaming.engine.lease import Lease, signed

# An engine that holds the lease of a path, with a task's process that it has started, and a Java that outlives it.
ENGINE = """
import subprocess, sys, time
from pathlib import Path
from streaming.engine.lease import Lease
lease = Lease(Path(sys.argv[1]))
assert lease.take()
sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
task = subprocess.Popen(sleeper, pass_fds=[lease.fileno()])
java = subprocess.Popen(sleeper)
lease.sign(java.pid)
print(task.pid, java.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spark" / "earth" / "lease"


@pytest.fixture
def other(path):
    """Start another engine; return it, its task and its Java."""
    engine = subprocess.Popen([sys.executable, "-c", ENGINE, path], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    task, java = (psutil.Process(int(word)) for word in engine.stdout.readline().split())
    yield engine, task, java
    for process in (engine, task, java):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    engine.communicate()


def test_a_lease_is_free_when_its_holder_and_all_who_share_it_are_dead(path, other):
    engine, task, _ = other
    with Lease(path) as lease:
        assert not lease.take()
        engine.kill()
        engine.wait()
        assert not lease.take(0.2), "a task may still write"
        task.kill()
        assert lease.take(PATIENCE_S)
        with Lease(path) as third:
            assert not third.take()


def test_the_java_of_a_dead_engine_is_dead_once_the_next_one_has_signed(path, other):
    engine, task, java = other
    assert signed(path) == java
    mine = psutil.Process()
    engine.kill()
    task.kill()
    with Lease(path) as lease:
        assert lease.take(PATIENCE_S)
        assert alive(java.pid)
        lease.sign(mine.pid)
    assert not alive(java.pid)
    assert signed(path) == mine


def test_a_number_that_another_process_has_by_now_is_not_killed(path):
    mine = psutil.Process()
    with Lease(path) as lease:
        lease.sign(mine.pid)
        path.write_text(path.read_text().replace(str(mine.create_time()), str(mine.create_time() - 60)))
        assert signed(path) is None
        lease.sign(mine.pid)


def test_nobody_has_signed_a_lease_that_nobody_had(path):
    assert signed(path) is None
    with Lease(path) as lease:
        for left in (b"", b"\0" * 20, b"\xff", b"[1", b"{}", b"[1, 2, 3]"):
            path.write_bytes(left)
            assert signed(path) is None
        lease.sign(os.getpid())
        assert signed(path) == psutil.Process()

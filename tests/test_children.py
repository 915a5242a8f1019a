"""Work in child processes ends by its limits, and neither harms who asks nor the work after it."""

import os
import resource
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bench.live import wait_for
from streaming import confined
from streaming.children import Children, LimitReached
from streaming.errors import InvalidPlan
from streaming.language import thousands

MEMORY_BYTES = 1 << 30


@pytest.fixture(scope="module", params=["started", "forked"])
def children(request, tmp_path_factory):
    """Children that an interpreter starts, and such that a fork server forks."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(confined, "_python", sys.executable)
        if request.param == "forked":
            confined.fork_from_here(tmp_path_factory.mktemp("forks"))
        some = Children()
        yield some
        some.end()


def test_a_forked_child_gives_way_and_has_a_session_and_the_limit_of_memory_as_a_started_one_has(children):
    found = run(children, place)
    assert found[:3] == (True, min(19, os.nice(0) + confined.WAITED_FOR), MEMORY_BYTES)
    assert found[3] == str(confined.WAITED_FOR) or not confined.GROUP.exists()
    assert found[4:] == (str(Path(confined.__file__).parents[1]), 1)


def run(children, function, *arguments, seconds=60.0, **options):
    return children.run(function, arguments, MEMORY_BYTES, seconds, **options)


def pid():
    return os.getpid()


def place():
    group = confined.GROUP.read_text().split()[-1] if confined.GROUP.exists() else ""
    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return os.getsid(0) == os.getpid(), os.nice(0), most, group, os.getcwd(), threading.active_count()


def noisy():
    print("no answer")
    os.write(1, b"nor this")
    return b"x" * 3_000_000


def refuse():
    raise InvalidPlan("k must be at most %(most)s; got %(error)s", most=thousands(1000), error=InvalidPlan("none"))


def fail():
    raise KeyError("a bug")


def arrays():
    return len([np.ones(1 << 27) for _ in range(10)])


def frames():
    return pl.DataFrame({"a": [1]}).select(pl.int_range(0, 1 << 29).repeat_by(1)).height


def threads():
    """Start more threads than there is memory for their stacks."""
    done = threading.Event()
    try:
        for _ in range(1000):
            threading.Thread(target=done.wait).start()
    finally:
        done.set()


def columns():
    raise OSError("LZ4 decompress failed: ERROR_allocation_failed")


def leave():
    os._exit(3)


def sleep():
    time.sleep(600)


def test_a_child_is_kept_for_the_next_work_whatever_the_work_prints(children):
    first = run(children, pid)
    assert first != os.getpid() and run(children, noisy) == b"x" * 3_000_000 and run(children, pid) == first


def test_an_error_is_that_of_the_function_and_the_child_goes_on(children):
    first = run(children, pid)
    with pytest.raises(InvalidPlan, match="k must be at most 1,000; got none"):
        run(children, refuse)
    with pytest.raises(RuntimeError, match="KeyError: 'a bug'"):
        run(children, fail)
    assert run(children, pid) == first


@pytest.mark.parametrize("function", [arrays, frames, threads, columns])
def test_work_that_needs_too_much_memory_is_refused_and_the_next_one_is_done(children, function):
    with pytest.raises(LimitReached, match="with 1,073,741,824 bytes of memory"):
        run(children, function)
    assert run(children, pid)


def test_work_that_takes_too_long_is_killed_and_so_is_work_that_nobody_wants(children):
    first = run(children, pid)
    with pytest.raises(LimitReached, match=r"within 0\.5 s"):
        run(children, sleep, seconds=0.5)
    wait_for(lambda: not os.path.exists(f"/proc/{first}"), "its end")
    gone = threading.Event()
    gone.set()
    with pytest.raises(LimitReached):
        run(children, sleep, wanted=lambda: not gone.is_set())


def test_a_child_that_dies_is_told(children):
    with pytest.raises(LimitReached, match="this one ended with code 3"):
        run(children, leave)


def test_a_child_that_has_nothing_to_do_ends():
    some = Children(idle_s=0.1)
    number = run(some, pid)
    wait_for(lambda: not os.path.exists(f"/proc/{number}"), "its end")

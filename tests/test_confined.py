"""A process that works for a user has a session of its own, a lower priority, and a limit of memory."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from streaming import confined

ROOT = Path(__file__).parents[1]
TELL = """
import os, resource
from streaming import confined
confined.confine(1 << 30)
confined.give_way(7)
group = confined.GROUP.read_text().split()[-1] if confined.GROUP.exists() else "7"
print(os.getsid(0) == os.getpid(), os.nice(0), group, resource.getrlimit(resource.RLIMIT_DATA)[0])
"""


@pytest.mark.parametrize("apart", [False, True])
def test_a_confined_process_gives_way_whether_it_had_a_session_or_not(apart):
    told = subprocess.run(
        [sys.executable, "-c", TELL], cwd=ROOT, capture_output=True, text=True, start_new_session=apart
    )
    assert told.stdout.split() == ["True", str(min(19, os.nice(0) + 7)), "7", str(1 << 30)], told.stderr


def test_a_session_whose_priority_the_kernel_does_not_take_yet_tries_again(monkeypatch):
    class Group:
        left = 3

        def write_text(self, text):
            self.left -= 1
            if self.left:
                raise BlockingIOError

    group = Group()
    monkeypatch.setattr(confined, "GROUP", group)
    monkeypatch.setattr(confined, "_PAUSE_S", 0)
    monkeypatch.setattr(confined.os, "setsid", lambda: None)
    monkeypatch.setattr(confined.os, "nice", lambda _: None)
    confined.give_way(5)
    assert group.left == 0


@pytest.mark.parametrize("niceness", [confined.WAITED_FOR, confined.IN_BACKGROUND])
def test_a_module_gives_way_before_it_loads_anything(tmp_path, niceness):
    (tmp_path / "shown.py").write_text(
        "import os, sys\nprint(os.nice(0), os.getsid(0) == os.getpid(), __name__, sys.argv[1:])"
    )
    words, told_by = confined.command(niceness, "shown", "one"), os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    told = subprocess.run(words, cwd=ROOT, env=told_by, capture_output=True, text=True)
    assert told.stdout.split() == [str(min(19, os.nice(0) + niceness)), "True", "__main__", "['one']"], told.stderr


STARTED = re.compile(r'"-m",\s*"(streaming\.[\w.]+)"')
GIVING_WAY = re.compile(r'(?:\bcommand\(\w+,|\bChild\()\s*"(streaming\.[\w.]+)"')
# They serve everybody.
SHARED = {"streaming.engine", "streaming.forkserver", "streaming.gateway"}


def test_every_program_that_is_started_for_a_user_is_confined():
    sources = [file.read_text() for room in ("webapp", "streaming") for file in (ROOT / room).rglob("*.py")]
    assert {module for source in sources for module in STARTED.findall(source)} == SHARED | {"streaming.confined"}
    giving_way = {module for source in sources for module in GIVING_WAY.findall(source)}
    assert giving_way == {f"streaming.{name}" for name in ("children", "layers", "backtest", "replay", "gateway.trial")}
    for module in giving_way:
        place = ROOT / module.replace(".", "/")
        source = place / "__main__.py" if place.is_dir() else place.with_suffix(".py")
        assert "    confine(" in source.read_text(), module
        assert "with memory_errors():" in source.read_text(), module

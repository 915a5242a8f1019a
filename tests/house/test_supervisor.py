"""The supervisor, with small programs in the place of the real ones."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bench.live import PATIENCE_S, wait_for
from bench.processes import alive, processes
from webapp.live import sessions
from webapp.live.rotation import rotate
from webapp.live.supervisor import Program, StepFailed, Supervisor, next_pause_s

ROOT = Path(__file__).parents[2]


def python(name, code, **options):
    """Return a program that runs a piece of Python."""
    return Program(name, (sys.executable, "-c", textwrap.dedent(code)), **options)


def note_start(folder):
    """Return a sleeper that leaves a file named after its process."""
    return f"import os, pathlib, time; (pathlib.Path({str(folder)!r}) / str(os.getpid())).touch(); time.sleep(60)"


async def until(condition, timeout_s=PATIENCE_S):
    """Wait for a condition and return what it gave."""
    async with asyncio.timeout(timeout_s):
        while not (found := condition()):
            await asyncio.sleep(0.02)
    return found


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervisor(tmp_path, said):
    return Supervisor(logs=tmp_path / "log", environment=dict(os.environ), say=said.append, folder=tmp_path)


async def test_a_killed_program_comes_back(supervisor, said, tmp_path):
    starts = tmp_path / "starts"
    starts.mkdir()
    async with supervisor:
        supervisor.keep(python("sleeper", note_start(starts)))
        first = await until(lambda: list(starts.iterdir()))
        os.kill(int(first[0].name), signal.SIGKILL)
        await until(lambda: len(list(starts.iterdir())) == 2)
    assert any("sleeper stopped unexpectedly (signal 9)" in line for line in said)
    assert not any(alive(int(start.name)) for start in starts.iterdir())


async def test_what_a_program_started_dies_with_it_even_from_a_group_of_its_own(supervisor, tmp_path):
    note = tmp_path / "grandchild"
    code = f"""
        import os, pathlib, subprocess, sys, time
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], process_group=0)
        pathlib.Path({str(note)!r}).write_text(str(child.pid) + ".")
        time.sleep(60)
    """
    async with supervisor:
        supervisor.keep(python("parent", code))
        await until(lambda: note.exists() and note.read_text().endswith("."))
        grandchild = int(note.read_text()[:-1])
        assert alive(grandchild)
    assert not alive(grandchild)


async def test_programs_end_turn_by_turn(supervisor, said, tmp_path):
    starts = tmp_path / "starts"
    starts.mkdir()
    async with supervisor:
        for name, turn in (("redis", 4), ("web", 3), ("beat", 3), ("gateway", 1)):
            supervisor.keep(python(name, note_start(starts), end_turn=turn))
        await until(lambda: len(list(starts.iterdir())) == 4)
    assert said == ["gateway ended", "web, beat ended", "redis ended"]


async def test_a_program_deaf_to_sigterm_is_killed_after_its_time(supervisor, tmp_path):
    note = tmp_path / "deaf"
    code = f"""
        import os, pathlib, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        pathlib.Path({str(note)!r}).write_text(str(os.getpid()) + ".")
        time.sleep(60)
    """
    async with supervisor:
        supervisor.keep(python("deaf", code, stop_s=0.3))
        await until(lambda: note.exists() and note.read_text().endswith("."))
    assert not alive(int(note.read_text()[:-1]))


async def test_a_step_that_fails_tells_the_end_of_its_log(supervisor):
    async with supervisor:
        with pytest.raises(StepFailed, match=r"exit code 3(?s:.*)no such table"):
            await supervisor.run(python("migrate", "print('no such table'); raise SystemExit(3)"))


async def test_a_program_that_cannot_be_started_is_tried_again(supervisor, said, tmp_path):
    async with supervisor:
        supervisor.keep(Program("absent", (tmp_path / "absent",)))
        await until(lambda: len(said) == 2)
    assert "No such file" in said[0]


def test_the_pause_between_starts_grows_to_a_limit_and_never_ends():
    pauses = [0.05]
    for _ in range(50):
        pauses.append(next_pause_s(pauses[-1], lived_s=0.1))
    assert pauses[1:4] == [0.1, 0.2, 0.4]
    assert pauses[-1] == 30.0
    assert next_pause_s(30.0, lived_s=3600) == 0.1


KILLED_AS_IT_STARTS_ONE = """
        start = asyncio.create_subprocess_exec

        async def start_and_die(*command, **options):
            await start(*command, **options)
            os.kill(os.getpid(), signal.SIGKILL)

        asyncio.create_subprocess_exec = start_and_die
"""


@pytest.mark.parametrize("killed, programs", [("", ("one", "two")), (KILLED_AS_IT_STARTS_ONE, ("one",))])
def test_programs_end_when_the_supervisor_itself_is_killed(killed, programs, tmp_path):
    starts = tmp_path / "starts"
    starts.mkdir()
    code = f"""
        import asyncio, os, pathlib, signal, sys
        from webapp.live.supervisor import Program, Supervisor
        {killed}
        async def main():
            home = pathlib.Path({str(tmp_path)!r})
            environment = os.environ | {{"LOOKOUT_HOME": str(home)}}
            supervisor = Supervisor(logs=home, environment=environment, say=print, folder=home)
            async with supervisor:
                for name in {programs!r}:
                    supervisor.keep(Program(name, (sys.executable, "-c", {note_start(starts)!r})))
                await asyncio.sleep(60)

        asyncio.run(main())
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT) as owner:
        wait_for(lambda: len(list(starts.iterdir())) == len(programs) or owner.poll() is not None, "the starts")
        owner.kill()
    wait_for(lambda: not any(processes(tmp_path)), "the end of all")


def test_the_guardian_spares_a_session_whose_program_had_ended():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True) as other:
        sessions.guard([f"{other.pid}\n", f"-{other.pid}\n"])
        assert other.poll() is None
        sessions.guard([f"{other.pid}\n"])
        assert other.wait(PATIENCE_S) == -signal.SIGTERM


def test_a_large_log_is_set_aside_while_a_program_goes_on_writing(tmp_path):
    log = tmp_path / "engine.log"
    with log.open("ab", buffering=0) as program:
        for number in range(5):
            program.write(f"{number}".encode() * 20)
            rotate(log, most_bytes=10, kept=3)
        program.write(b"end")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "engine.log": "end",
        "engine.log.1": "4" * 20,
        "engine.log.2": "3" * 20,
        "engine.log.3": "2" * 20,
    }

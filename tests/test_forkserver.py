"""What is started as Python behaves as an interpreter does, whatever becomes of the fork server."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from bench.live import PATIENCE_S, wait_for
from bench.processes import alive
from streaming.engine.python_workers import fork_server
from streaming.forkserver import ForkServer


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    # Longer than the path of a socket may be.
    with fork_server(tmp_path_factory.mktemp("state") / ("x" * 60) / "spark") as server:
        yield server


@pytest.fixture
def module(tmp_path):
    """Write a module; return its name and an environment in which it is found."""

    def write(text):
        (tmp_path / "asked_for.py").write_text(textwrap.dedent(text))
        return {**os.environ, "PYTHONPATH": str(tmp_path), "COLOUR": "blue"}

    return write


@pytest.fixture
def start():
    """Start what is started as Python; it is gone after the test."""
    with contextlib.ExitStack() as programs:

        def start(forks, environment, *arguments, **options):
            options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
            program = subprocess.Popen([forks.python, *arguments], env=environment, text=True, **options)
            programs.enter_context(program)
            programs.callback(program.kill)
            return program

        yield start


def test_a_module_has_the_arguments_the_environment_the_streams_and_the_exit_code_of_who_asked(forks, module, start):
    environment = module("""
        import os, sys
        print(__name__, sys.argv[1:], os.environ["COLOUR"], sys.stdin.read(), "pyspark.worker" in sys.modules)
        print(os.getcwd(), file=sys.stderr)
        sys.exit(7)
    """)
    program = start(forks, environment, "-m", "asked_for", "one", "two words", cwd="/usr")
    assert program.communicate("typed") == ("__main__ ['one', 'two words'] blue typed True\n", "/usr\n")
    assert program.returncode == 7


def test_who_asked_ends_by_the_signal_that_ended_what_was_asked_for(forks, module, start):
    environment = module("import os; os.abort()")
    assert start(forks, environment, "-m", "asked_for").wait(PATIENCE_S) == -signal.SIGABRT


def test_large_environments_come_whole(forks, module, start):
    environment = module("import os; print(len(os.environ['LARGE']), len(os.environ['LARGER']))")
    environment |= {"LARGE": "x" * 100_000, "LARGER": "y" * 120_000}
    assert start(forks, environment, "-m", "asked_for").communicate()[0] == "100000 120000\n"


def test_what_was_asked_for_ends_with_who_asked(forks, module, start):
    environment = module("import os, signal; print(os.getpid(), flush=True); signal.pause()")
    programs = [start(forks, environment, "-m", "asked_for") for _ in range(3)]
    pids = [int(program.stdout.readline()) for program in programs]
    programs[1].kill()
    wait_for(lambda: not alive(pids[1]), "its end")
    assert [alive(pid) for pid in pids] == [True, False, True]
    os.kill(pids[0], signal.SIGTERM)
    assert programs[0].wait(PATIENCE_S) == -signal.SIGTERM


def test_another_command_line_is_the_interpreters_own(forks, start):
    program = start(forks, dict(os.environ), "-c", "import sys; print(sys.executable, 'pyspark' in sys.modules)")
    assert program.communicate()[0] == f"{sys.executable} False\n"


def test_without_a_server_the_interpreter_runs_the_module_itself(tmp_path, module, start):
    environment = module("import sys; print('pyspark' in sys.modules)")
    with fork_server(tmp_path / "spark") as ended:
        pass
    assert start(ended, environment, "-m", "asked_for").communicate()[0] == "False\n"


def test_a_server_that_is_killed_starts_again_and_says_so(tmp_path, module, start, caplog):
    environment = module("import os, sys; print('sched' in sys.modules, os.getppid())")

    def told():
        return start(forks, environment, "-m", "asked_for").communicate()[0].split()

    with ForkServer(tmp_path, ["sched"]) as forks:
        loaded, first = told()
        os.kill(int(first), signal.SIGKILL)
        wait_for(lambda: caplog.messages, "its start")
        loaded_again, second = told()
        assert told() == [loaded, second] and (loaded, loaded_again) == ("True", "True") and first != second
    assert "the fork server ended with code -9; it starts again" in caplog.text
    assert not alive(int(second)) and len(caplog.messages) == 1


def test_each_process_has_a_folder_and_takes_over_that_of_a_killed_one(tmp_path):
    begin = f"""
        from pathlib import Path
        from streaming import confined
        confined.fork_from_here(Path({str(tmp_path)!r}))
        print(confined.command(0, "sched")[0], flush=True)
        input()
    """
    command = [sys.executable, "-c", textwrap.dedent(begin)]
    with contextlib.ExitStack() as programs:

        def begun():
            program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            programs.enter_context(program)
            programs.callback(program.kill)
            return program, Path(os.fsdecode(program.stdout.readline())).parent

        (first, _), (_, other) = begun(), begun()
        first.kill()
        first.wait()
        folders = [other, begun()[1]]
        assert [folder.stat().st_mode & 0o777 for folder in folders] == [0o700, 0o700]
    assert folders == [tmp_path / "2", tmp_path / "1"] and sorted(tmp_path.iterdir()) == folders[::-1]


def test_the_server_ends_with_its_engine_and_ends_what_it_forked(tmp_path, module):
    environment = module("import os, signal; print(os.getpid(), flush=True); signal.pause()")
    engine = f"""
        import subprocess, sys
        from pathlib import Path
        from streaming.engine.python_workers import fork_server
        with fork_server(Path({str(tmp_path / "spark")!r})) as forks:
            subprocess.run([forks.python, "-m", "asked_for"])
    """
    command = [sys.executable, "-c", textwrap.dedent(engine)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as program:
        child = psutil.Process(int(program.stdout.readline()))
        server = child.parent()
        program.kill()
    wait_for(lambda: not alive(child.pid) and not alive(server.pid), "the end of both")


def test_a_fork_computes_with_the_libraries_that_were_imported_before(forks, module, start):
    environment = module("""
        import numpy as np, polars as pl, pyarrow.compute as pc
        import pyarrow as pa
        table = pl.DataFrame({"a": np.arange(100_000) % 7, "b": np.ones(100_000)})
        print(table.lazy().group_by("a").agg(pl.col("b").sum()).collect().height)
        print(pc.sum(pa.chunked_array([pa.array(range(1000))] * 8)).as_py(), pl.thread_pool_size())
    """)
    assert start(forks, environment, "-m", "asked_for").communicate()[0] == "7\n3996000 1\n"

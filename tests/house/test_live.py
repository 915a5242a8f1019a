"""``manage.py live``, whole: the real Redis, gateway, engine, web server and Celery."""

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from bench.live import PATIENCE_S, ROOT, wait_for
from bench.ports import free_port
from bench.processes import processes
from streaming.engine.lease import signed

ALL = {"redis-server", "streaming.engine", "streaming.gateway", "uvicorn", "worker", "beat", "java", "sessions.py"}


def running(home):
    """Return the process of each part by its name; of the engines, the one that evaluates."""
    found, java = {}, signed(home / "spark" / "earth" / "lease")
    evaluating = {java.pid, java.ppid()} if java else set()
    for process in processes(home):
        try:
            words = {Path(word).name for word in process.cmdline()}
        except psutil.NoSuchProcess:
            continue
        names = (ALL & set(words)) or {name for name in ALL if any(word.startswith(name) for word in words)}
        if process.pid not in evaluating:
            names -= {"streaming.engine", "java"}
        found |= dict.fromkeys(names, process)
    return found


@pytest.fixture
def start(tmp_path):
    """Return a function that starts Lookout in a folder of its own; end it, whatever happens."""
    home, output, port = tmp_path / "home", tmp_path / "output", free_port()
    clean = {name: value for name, value in os.environ.items() if name not in ("LOOKOUT_REDIS_URL", "REDIS_URL")}
    environment = clean | {"LOOKOUT_HOME": str(home), "LOOKOUT_PORT": str(port)}
    started = []

    def run():
        with output.open("w") as words:
            command = [sys.executable, "manage.py", "live"]
            started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=words, stderr=words))
        return started[-1]

    yield run, home, output, port
    for process in started:
        process.kill()
        process.wait()
    wait_for(lambda: not any(processes(home)), output.read_text)


@pytest.mark.long
@pytest.mark.spark
def test_everything_starts_comes_back_when_killed_and_leaves_nothing_behind(start):
    run, home, output, port = start
    live = run()
    wait_for(lambda: "everything is up" in output.read_text(), output.read_text)
    link = next(line for line in output.read_text().splitlines() if "log in, once, at" in line).split()[-1]
    assert link.startswith(f"http://127.0.0.1:{port}/")
    with urllib.request.urlopen(link, timeout=PATIENCE_S) as page:
        assert page.status == 200
    before = running(home)
    assert set(before) == ALL
    for name in ("streaming.engine", "streaming.gateway", "uvicorn", "worker"):
        before[name].kill()
    wait_for(lambda: came_back(before, running(home)), output.read_text)

    live.send_signal(signal.SIGINT)
    assert live.wait(PATIENCE_S) == 0
    assert "nothing is left running" in output.read_text()
    assert not any(processes(home))

    # A second start finds the first one's Redis, with its data, where it was.
    port_kept = (home / "redis" / "url").read_text()
    live = run()
    wait_for(lambda: "log in, once, at" in output.read_text(), output.read_text)
    assert (home / "redis" / "url").read_text() == port_kept
    assert "0 streams made" in (home / "log" / "prepare.log").read_text().splitlines()[-1]


def came_back(before, now):
    """Tell whether all run, the killed ones as new processes."""
    new = {name for name in now if now[name].pid != before[name].pid}
    return set(now) == ALL and new == {"streaming.engine", "java", "streaming.gateway", "uvicorn", "worker"}

"""``manage.py live``, whole: the real Redis, gateway, engine, web server and Celery."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pytest

from tests.conftest import free_port

ROOT = Path(__file__).parents[2]
ALL = {"redis-server", "streaming.engine", "streaming.gateway", "uvicorn", "worker", "beat", "java", "sessions.py"}
UP_S = 150


def processes_of(home):
    """Return every process, at whatever depth, that was started with a state folder."""
    return [process for process in psutil.process_iter() if _home_of(process) == str(home)]


def _home_of(process):
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get("LOOKOUT_HOME")
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def running(home):
    """Return the process of each part by its name."""
    found = {}
    for process in processes_of(home):
        try:
            words = {Path(word).name: process for word in process.cmdline()}
        except psutil.NoSuchProcess:
            continue
        found |= {name: words[name] for name in ALL & set(words)} or {
            name: process for name in ALL if any(word.startswith(name) for word in words)
        }
    return found


def wait_for(condition, output, timeout_s=UP_S):
    """Wait for a condition; show the output where it does not come."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline_s, output.read_text()
        time.sleep(0.1)
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
    wait_for(lambda: not processes_of(home), output, 30)


@pytest.mark.spark
def test_everything_starts_comes_back_when_killed_and_leaves_nothing_behind(start):
    run, home, output, port = start
    live = run()
    wait_for(lambda: "everything is up" in output.read_text(), output)
    link = next(line for line in output.read_text().splitlines() if "log in, once, at" in line).split()[-1]
    assert link.startswith(f"http://127.0.0.1:{port}/")
    with urllib.request.urlopen(link, timeout=20) as page:
        assert page.status == 200
    before = running(home)
    assert set(before) == ALL
    for name in ("streaming.engine", "streaming.gateway", "uvicorn", "worker"):
        before[name].kill()
    wait_for(lambda: came_back(before, running(home)), output)

    live.send_signal(signal.SIGINT)
    assert live.wait(30) == 0
    assert "nothing is left running" in output.read_text()
    assert processes_of(home) == []

    # A second start finds the first one's Redis, with its data, where it was.
    port_kept = (home / "redis" / "url").read_text()
    live = run()
    wait_for(lambda: "log in, once, at" in output.read_text(), output)
    assert (home / "redis" / "url").read_text() == port_kept
    assert "0 streams made" in (home / "log" / "seed_demo.log").read_text().splitlines()[-1]


def came_back(before, now):
    """Tell whether all run, the killed ones as new processes."""
    new = {name for name in now if now[name].pid != before[name].pid}
    return set(now) == ALL and new == {"streaming.engine", "java", "streaming.gateway", "uvicorn", "worker"}

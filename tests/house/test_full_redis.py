"""Programs that a full Redis refuses something do not end."""

import os
import subprocess
import sys
import time

import pytest

from bench.live import PATIENCE_S, ROOT
from tests.full_redis import full


@pytest.fixture
def worker(redis_server, tmp_path):
    """Return a function that starts a worker, and the file with its output."""
    started, output = [], tmp_path / "output"
    variables = {"LOOKOUT_HOME": str(tmp_path), "LOOKOUT_REDIS_URL": redis_server, "DATABASE_URL": ""}

    def start():
        command = [sys.executable, "-m", "celery", "-A", "webapp", "worker", "--pool=threads", "--without-gossip"]
        with output.open("wb") as words:
            options = {"cwd": ROOT, "env": os.environ | variables, "stdout": words, "stderr": words}
            started.append(subprocess.Popen([*command, "--without-mingle", "--loglevel=INFO"], **options))
        return started[0]

    yield start, output
    for process in started:
        process.kill()
        process.wait()


def test_a_worker_connects_again_until_redis_has_room(worker, redis_client):
    start, output = worker

    def until(words):
        deadline_s = time.monotonic() + PATIENCE_S
        while words not in output.read_text():
            assert process.poll() is None and time.monotonic() < deadline_s, output.read_text()
            time.sleep(0.02)

    with full(redis_client):
        process = start()
        until("command not allowed when used memory > 'maxmemory'")
    until(" ready.")

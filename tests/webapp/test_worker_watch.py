"""A worker or beat that stands still is told of, and a worker that takes no more tasks ends, and starts again."""

import asyncio
import signal

import pytest
import redis
from asgiref.sync import sync_to_async

from bench.live import ROOT, wait_for
from streaming.keys import BEAT_KEY, WORKER_KEY
from tests.full_redis import full
from tests.webapp.workers import Workers
from webapp.celery import app as celery_app
from webapp.live.supervisor import Supervisor
from webapp.operations import worker_watch
from webapp.operations.health import Health
from webapp.operations.worker_watch import END_AFTER_S, LOOK_S, WorkerWatch

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "webapp.settings"
QUEUE, THREADS = "celery", 6
LOOKS = int(END_AFTER_S / LOOK_S)


def reasons():
    """Return what the health check says of worker and beat."""
    return {part: words for part, words in Health().reasons().items() if part in ("worker", "beat")}


@pytest.fixture
def ends():
    """Return a list to which a watch adds each time that it would end the worker."""
    return []


@pytest.fixture
def watch(ends, redis_client, monkeypatch):
    """Return a watch of a worker without tasks, with a task in the queue."""
    monkeypatch.setattr(worker_watch, "reserved_requests", [])
    redis_client.lpush(QUEUE, "a task")
    return WorkerWatch(QUEUE, THREADS, lambda: ends.append(True))


def look(watch, times):
    for _ in range(times):
        watch.look()


def untaken_s(client):
    """Return for how long tasks have waited in vain, as the worker reports it."""
    return int(client.hget(WORKER_KEY, "untaken_s"))


def test_a_worker_ends_that_lets_tasks_wait_while_threads_are_free(watch, ends, redis_client):
    look(watch, LOOKS - 1)
    assert untaken_s(redis_client) == END_AFTER_S - LOOK_S and not ends
    look(watch, 1)
    assert ends == [True]


def test_a_worker_that_takes_a_task_now_and_then_does_not_end(watch, ends, redis_client):
    look(watch, LOOKS - 1)
    watch.note_taken(sender=None, request=None)
    look(watch, LOOKS - 1)
    redis_client.delete(QUEUE)
    look(watch, 1)
    assert untaken_s(redis_client) == 0
    redis_client.lpush(QUEUE, "a task")
    look(watch, LOOKS - 1)
    assert not ends


def test_a_worker_whose_threads_are_all_busy_does_not_end_nor_as_soon_as_one_is_free(
    watch, ends, redis_client, monkeypatch
):
    monkeypatch.setattr(worker_watch, "reserved_requests", ["a request"] * THREADS)
    look(watch, 2 * LOOKS)
    assert untaken_s(redis_client) == 2 * END_AFTER_S
    monkeypatch.setattr(worker_watch, "reserved_requests", ["a request"] * (THREADS - 1))
    look(watch, LOOKS - 1)
    assert not ends


def test_a_worker_does_not_end_while_redis_is_full(watch, ends, redis_client):
    look(watch, LOOKS - 1)
    with full(redis_client):
        look(watch, 1)
        assert untaken_s(redis_client) == 0
    look(watch, LOOKS - 1)
    assert not ends


def test_a_worker_does_not_end_while_redis_is_away_nor_as_soon_as_it_is_back(
    watch, ends, project, redis_server, redis_client, monkeypatch
):
    looked, real = [], watch.look

    def count():
        looked.append(1)
        real()

    monkeypatch.setattr(worker_watch, "LOOK_S", 0.001)
    watch._idle = watch._untaken = 10**5
    monkeypatch.setattr(watch, "look", count)
    project.REDIS_URL = "redis://127.0.0.1:1/0"
    watch.start()
    wait_for(lambda: len(looked) > 1, "a second look")
    watch.stop()
    assert (watch._idle, watch._untaken) == (0, 0) and not ends


def test_the_watch_goes_on_after_whatever_redis_refuses(watch, ends, project, redis_client, monkeypatch, caplog):
    looked, real = [], watch.look

    def refused():
        looked.append(1)
        if len(looked) == 1:
            raise redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device")
        real()

    monkeypatch.setattr(worker_watch, "LOOK_S", 0.001)
    monkeypatch.setattr(watch, "look", refused)
    watch.start()
    wait_for(lambda: len(looked) > 2, "a look after the first one")
    watch.stop()
    assert "cannot look at the tasks that wait" in caplog.text and not ends


def test_a_worker_that_is_told_to_end_is_left_in_peace(watch, ends):
    watch.stop(sender=None)
    look(watch, 2 * LOOKS)
    assert not ends


@pytest.mark.long
@pytest.mark.parametrize("program", ["worker", "beat"])
def test_a_program_that_stands_still_is_named_until_it_goes_on(program, redis_server, redis_client, tmp_path):
    with Workers(tmp_path, redis_server, SETTINGS) as workers:
        assert set(reasons().values()) <= {"has not started yet"}
        wait_for(lambda: not reasons(), reasons)
        stopped = getattr(workers, program)
        stopped.send_signal(signal.SIGSTOP)
        wait_for(lambda: reasons().get(program, "").startswith("has been silent for "), reasons)
        wait_for(lambda: list(reasons()) == [program], reasons)
        stopped.send_signal(signal.SIGCONT)
        wait_for(lambda: not reasons() and not redis_client.llen(QUEUE), reasons)
        assert workers.worker.poll() is workers.beat.poll() is None


@pytest.mark.long
async def test_a_worker_that_takes_no_more_tasks_is_told_of_then_ends_and_is_started_again(
    redis_server, redis_client, tmp_path
):
    said, workers = [], Workers(tmp_path, redis_server, SETTINGS)
    programs = [workers.programs[name] for name in ("worker", "beat")]
    wait = sync_to_async(wait_for)
    async with Supervisor(tmp_path / "log", workers.environment, said.append, ROOT) as supervisor:
        for program in programs:
            supervisor.keep(program)
        await asyncio.gather(*map(supervisor.ready, programs))
        assert redis_client.exists(WORKER_KEY, BEAT_KEY) == 2
        with celery_app.connection_for_write(redis_server) as connection:
            celery_app.control.cancel_consumer(QUEUE, connection=connection)
        await wait(lambda: reasons().get("worker", "").endswith("although tasks wait"), reasons)
        await wait(lambda: said, "the end of the worker")
        assert said[0].startswith("worker stopped unexpectedly (exit code 1); it starts again in 0.1 s")
        assert "threads are free, and the worker has taken none" in (tmp_path / "log" / "worker.log").read_text()
        await wait(lambda: not reasons() and not redis_client.llen(QUEUE), reasons)

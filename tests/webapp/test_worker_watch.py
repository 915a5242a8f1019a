"""A worker or beat that stands still is told of, and so is a worker that takes no more tasks."""

import signal

import pytest

from bench.live import wait_for
from streaming.keys import WORKER_KEY
from tests.full_redis import full
from tests.webapp.workers import Workers
from webapp.celery import app as celery_app
from webapp.health import Health
from webapp.worker_watch import LOOK_S, WorkerWatch

pytestmark = pytest.mark.django_db(transaction=True)
SETTINGS = "webapp.settings"
QUEUE = "celery"


def reasons():
    """Return what the health check says of worker and beat."""
    return {part: words for part, words in Health().reasons().items() if part in ("worker", "beat")}


def look(watch, times):
    for _ in range(times):
        watch.look()


def untaken_s(client):
    """Return for how long tasks have waited in vain, as the worker reports it."""
    return int(client.hget(WORKER_KEY, "untaken_s"))


def test_the_looks_are_counted_while_tasks_wait_and_none_is_taken(redis_client):
    watch = WorkerWatch(QUEUE)
    redis_client.lpush(QUEUE, "a task")
    look(watch, 7)
    assert untaken_s(redis_client) == 7 * LOOK_S
    watch.note_taken(sender=None, request=None)
    look(watch, 1)
    assert untaken_s(redis_client) == LOOK_S
    with full(redis_client):
        look(watch, 1)
        assert untaken_s(redis_client) == 0
    redis_client.delete(QUEUE)
    look(watch, 7)
    assert untaken_s(redis_client) == 0


@pytest.mark.long
@pytest.mark.parametrize("program", ["worker", "beat"])
def test_a_program_that_stands_still_is_named_until_it_goes_on(program, redis_server, redis_client, tmp_path):
    with Workers(tmp_path, redis_server, SETTINGS) as workers:
        assert set(reasons().values()) <= {"has not started yet"}
        wait_for(lambda: not reasons(), reasons)
        stopped = getattr(workers, program)
        stopped.send_signal(signal.SIGSTOP)
        wait_for(reasons, "a reason")
        assert list(found := reasons()) == [program] and found[program].startswith("has been silent for ")
        stopped.send_signal(signal.SIGCONT)
        wait_for(lambda: not reasons() and not redis_client.llen(QUEUE), reasons)
        assert workers.worker.poll() is workers.beat.poll() is None


@pytest.mark.long
def test_a_worker_that_lives_but_takes_no_tasks_is_named(redis_server, redis_client, tmp_path):
    with Workers(tmp_path, redis_server, SETTINGS):
        wait_for(lambda: not reasons(), reasons)
        with celery_app.connection_for_write(redis_server) as connection:
            celery_app.control.cancel_consumer(QUEUE, connection=connection)
            found = wait_for(reasons, "a reason")
            assert list(found) == ["worker"] and found["worker"].endswith("although tasks wait")
            celery_app.control.add_consumer(QUEUE, connection=connection)
        wait_for(lambda: not reasons() and not redis_client.llen(QUEUE), reasons)

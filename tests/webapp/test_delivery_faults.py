"""No incident is lost, whatever is killed: the worker, Redis, the receiver; and how fast alarms leave."""

import time

import pytest

from bench.live import wait_for
from tests.webapp.alarms import changed, query_of, subscribed, webhook
from tests.webapp.mortal import MortalRedis
from tests.webapp.receiver import Receiver
from tests.webapp.workers import Workers
from webapp.delivery import outbox
from webapp.models import Delivery, DeliveryAttempt

pytestmark = pytest.mark.django_db(transaction=True)
QUICK, REAL = "tests.webapp.delivery_settings", "webapp.settings"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch):
    """Leave all sending to the workers."""
    monkeypatch.setattr(outbox, "_wake", lambda: None)


def arrived(receiver):
    """Return the objects whose incidents the receiver has taken, by key."""
    return sorted(document["incident"]["key"] for document in receiver.taken.values())


def all_over(workers):
    """Wait until nothing is left to send; start a worker that has ended, as the supervisor does.

    Celery may end a worker that held a task when its Redis died.
    """

    def is_over():
        if workers.worker.poll() is not None:
            workers.live()
        return not Delivery.objects.filter(state__in=Delivery.OPEN).exists()

    wait_for(is_over, workers.log)


@pytest.mark.long
def test_a_receiver_that_fails_half_the_time_and_a_worker_killed_twice_lose_and_double_nothing(
    user, redis_server, tmp_path
):
    with Receiver(failing=0.5) as receiver:
        subscribed(user, webhook(receiver.url))
        changed(query_of(user), 300)
        with Workers(tmp_path, redis_server, QUICK) as workers:
            for so_far in (40, 150):
                assert receiver.until(so_far) >= so_far, workers.log()
                workers.die()
                assert Delivery.objects.exclude(lease="").exists()  # it was killed with attempts under way
                workers.live()
            all_over(workers)
        assert arrived(receiver) == sorted(f"ship-{number}" for number in range(300))
        assert set(receiver.taken) == set(Delivery.objects.values_list("key", flat=True))
        assert len(receiver.requests) > 300
    assert Delivery.objects.filter(state="sent").count() == 300
    assert DeliveryAttempt.objects.filter(outcome="interrupted").exists()


@pytest.mark.long
def test_a_redis_that_is_killed_and_comes_back_empty_loses_no_alarm(user, tmp_path):
    redis = MortalRedis(tmp_path)
    try:
        with Receiver() as receiver, Workers(tmp_path, redis.url, QUICK) as workers:
            subscribed(user, webhook(receiver.url))
            query = query_of(user)
            changed(query, 5, prefix="before")
            assert receiver.until(5) == 5, workers.log()
            redis.die()
            changed(query, 20, prefix="during")
            redis.live()
            redis.client.flushall()
            changed(query, 5, prefix="after")
            all_over(workers)
            assert len(receiver.taken) == 30
    finally:
        redis.die()


@pytest.mark.long
def test_a_receiver_that_is_away_gets_everything_once_it_is_back(user, redis_server, tmp_path):
    with Receiver() as receiver:
        gone = receiver.port
    subscribed(user, channel := webhook(f"http://127.0.0.1:{gone}/alarms"))
    changed(query_of(user), 20)
    with Workers(tmp_path, redis_server, QUICK) as workers:
        wait_for(lambda: DeliveryAttempt.objects.filter(outcome="failed").count() > 20, workers.log)
        with Receiver() as back:
            channel.options = {"url": back.url}
            channel.save()
            all_over(workers)
            assert len(back.taken) == 20


@pytest.mark.long
def test_a_thousand_incidents_of_a_minute_leave_within_that_minute(user, redis_server, tmp_path, record_property):
    """Ten bursts of a hundred, with the real pace, to a receiver that takes 50 ms for each."""
    with Receiver(delay_s=0.05) as receiver, Workers(tmp_path, redis_server, REAL) as workers:
        subscribed(user, webhook(receiver.url))
        query = query_of(user)
        changed(query, 1, prefix="first")
        assert receiver.until(1) == 1, workers.log()
        began = time.monotonic()
        for burst in range(10):
            changed(query, 100, prefix=f"burst-{burst}")
        assert receiver.until(1_001) == 1_001, workers.log()
        took_s = time.monotonic() - began
        all_over(workers)
    record_property("seconds for 1,000 incidents", took_s)
    print(f"1,000 incidents in {took_s:.1f} s")
    assert took_s < 60

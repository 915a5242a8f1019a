"""How deliveries are sent: at least once, by one worker at a time, again after failures, within limits."""

import json
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from bench.live import PATIENCE_S
from bench.ports import free_port
from tests.webapp.alarms import changed, query_of, subscribed, webhook
from tests.webapp.receiver import Receiver
from webapp.delivery import outbox, tasks
from webapp.delivery.claims import INTERRUPTED, Outcome, claim, settle
from webapp.delivery.limits import release
from webapp.delivery.pace import DeliveryPace
from webapp.delivery.sending import deliver_due
from webapp.delivery.undelivered import undelivered
from webapp.models import Delivery, DeliveryAttempt

pytestmark = pytest.mark.django_db(transaction=True)
QUICK = DeliveryPace(attempt_s=1.0, lease_s=2.0, first_retry_s=0.02, longest_retry_s=0.05, attempts=50)


@pytest.fixture(autouse=True)
def pace(settings, monkeypatch):
    """Make retries quick; nothing is sent but by the tests."""
    settings.DELIVERY_PACE = QUICK
    monkeypatch.setattr(outbox, "_wake", lambda: None)
    return settings


@pytest.fixture
def receiver():
    with Receiver() as made:
        yield made


def delivered():
    """Send until nothing is left to send."""
    attempts = 0
    while Delivery.objects.filter(state__in=Delivery.OPEN, next_attempt__lte=timezone.now() + timedelta(minutes=1)):
        attempts += deliver_due()
    return attempts


def states():
    return Counter(Delivery.objects.values_list("state", flat=True))


def test_a_commit_wakes_the_task(user, receiver, monkeypatch):
    monkeypatch.undo()
    subscribed(user, webhook(receiver.url))
    changed(query_of(user), 3)  # the task runs where it is sent from
    assert len(receiver.taken) == 3
    assert states() == {"sent": 3}


@pytest.mark.long
def test_every_incident_arrives_once_by_key_at_a_receiver_that_fails_in_every_way(user, receiver):
    receiver.failing = 0.5
    subscribed(user, webhook(receiver.url))
    changed(query_of(user), 60)
    attempts = delivered()
    assert states() == {"sent": 60}
    assert sorted(document["incident"]["key"] for document in receiver.taken.values()) == sorted(
        f"ship-{number}" for number in range(60)
    )
    assert set(receiver.taken) == set(Delivery.objects.values_list("key", flat=True))
    assert set(receiver.faults) == {"", "refuse", "hang", "close", "take_and_close"}
    # A request on a connection that the receiver has just closed is an attempt of which it knows nothing.
    assert attempts == DeliveryAttempt.objects.count() >= receiver.faults.total()
    errors = " ".join(DeliveryAttempt.objects.filter(outcome="failed").values_list("error", flat=True))
    assert "must answer 2xx; got 500" in errors
    assert "an attempt must end within 1 s" in errors
    assert "Server disconnected" in errors
    assert DeliveryAttempt.objects.filter(outcome="sent", status=200).count() == 60


@pytest.mark.long
def test_every_attempt_sends_the_same_bytes_with_the_same_key(user, receiver):
    receiver.failing = 0.8
    subscribed(user, webhook(receiver.url))
    query = query_of(user)
    changed(query, 5)
    query.name = "Renamed"
    query.save()
    delivered()
    bodies = {}
    for headers, body, _ in receiver.requests:
        bodies.setdefault(headers["Idempotency-Key"], set()).add(body)
    assert len(bodies) == 5 and all(len(sent) == 1 for sent in bodies.values())
    assert len(receiver.requests) > 5
    assert {json.loads(body)["query"]["name"] for (body,) in bodies.values()} == {"Harbour"}
    assert all(json.loads(body)["id"] == key for key, (body,) in bodies.items())


def test_a_delivery_is_dead_after_the_last_attempt_and_can_be_sent_again(user, receiver, pace):
    pace.DELIVERY_PACE = DeliveryPace(first_retry_s=0.01, longest_retry_s=0.01, attempts=3)
    receiver.always = "refuse"
    subscribed(user, webhook(receiver.url))
    changed(query_of(user))
    assert delivered() == 3
    (dead,) = Delivery.objects.all()
    assert (dead.state, dead.attempts, dead.log.count()) == ("dead", 3, 3)
    receiver.always = ""
    assert Delivery.objects.send_again() == 1
    assert delivered() == 1
    assert states() == {"sent": 1}
    assert Delivery.objects.send_again() == 0


def test_a_receiver_that_is_gone_for_good_is_not_asked_again(user, receiver):
    receiver.always, receiver.status = "refuse", 410
    subscribed(user, webhook(receiver.url))
    changed(query_of(user))
    assert delivered() == 1
    assert states() == {"dead": 1}


def test_a_receiver_that_asks_to_wait_is_given_the_time(user, receiver):
    receiver.always, receiver.status, receiver.headers = "refuse", 503, {"Retry-After": "600"}
    subscribed(user, webhook(receiver.url))
    changed(query_of(user))
    began = timezone.now()
    assert deliver_due() == 1
    pause_s = (Delivery.objects.get().next_attempt - began).total_seconds()
    assert QUICK.longest_retry_s <= pause_s < 1  # it is not given more than the longest wait
    Delivery.objects.update(state="pending")
    assert DeliveryPace().longest_retry_s > 600


def test_waits_grow_and_differ():
    pace, jitter = DeliveryPace(first_retry_s=5, longest_retry_s=3_600), random.Random(3)
    waits = [[pace.wait_s(failed, jitter) for _ in range(50)] for failed in (1, 4, 12, 29)]
    for limit, some in zip((5, 40, 3_600, 3_600), waits, strict=True):
        assert limit / 2 <= min(some) < max(some) <= limit


def test_a_redirect_is_a_failure_and_is_not_followed(user, receiver):
    with Receiver() as inside:
        receiver.always, receiver.status = "refuse", 307
        receiver.headers = {"Location": inside.url}
        subscribed(user, webhook(receiver.url))
        changed(query_of(user))
        deliver_due()
        assert not inside.requests
    errors = [attempt.error for attempt in DeliveryAttempt.objects.all()]  # on a slow machine, a second one was due
    assert errors and all(
        f"got 307 Temporary Redirect to {inside.url}, which is not followed" in error for error in errors
    )


def test_a_channel_that_hangs_does_not_hold_up_another(user, receiver):
    with Receiver() as slow:
        slow.always = "hang"
        for url, name in ((slow.url, "slow"), (receiver.url, "fast")):
            subscribed(user, webhook(url, name))
        changed(query_of(user), 100)
        with ThreadPoolExecutor() as pool:
            run = pool.submit(_in_thread, deliver_due)
            assert receiver.until(100) == 100
            assert Delivery.objects.filter(channel__name="slow", state="sent").count() == 0
            slow.always = ""
            run.result(PATIENCE_S)
        delivered()
    assert len(slow.taken) == 100


def _in_thread(work, *arguments):
    try:
        return work(*arguments)
    finally:
        connection.close()


def test_workers_never_claim_the_same_delivery(user):
    subscribed(user, webhook("http://127.0.0.1:1/"))
    changed(query_of(user), 200)
    pace = DeliveryPace(at_once=5)

    def claims(token):
        mine = []
        while some := claim(timezone.now(), token, pace, lambda _: 5, ()):
            mine += [delivery.pk for delivery in some]
        return mine

    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda token: _in_thread(claims, token), "abcd"))
    numbers = [number for some in taken for number in some]
    assert sorted(numbers) == sorted(Delivery.objects.values_list("pk", flat=True))


def test_a_delivery_whose_worker_died_is_claimed_again_after_its_lease_and_the_attempt_is_logged(user):
    subscribed(user, webhook("http://127.0.0.1:1/"))
    changed(query_of(user))
    now, pace = timezone.now(), DeliveryPace(lease_s=30)
    (first,) = claim(now, "dead", pace, lambda _: 9, ())
    assert claim(now + timedelta(seconds=29), "living", pace, lambda _: 9, ()) == []
    (again,) = claim(now + timedelta(seconds=31), "living", pace, lambda _: 9, ())
    assert (again.pk, again.key, again.attempts) == (first.pk, first.key, 2)
    assert DeliveryAttempt.objects.values_list("outcome", "error").get() == ("interrupted", INTERRUPTED)
    # The first worker was only slow: its outcome is logged, but the delivery is the other's.
    settle([Outcome(first, now, 1.0, "too slow")], "dead", now, pace, random.Random(1))
    assert Delivery.objects.get().lease == "living"
    settle([Outcome(again, now, 1.0)], "living", now, pace, random.Random(1))
    assert states() == {"sent": 1}
    assert Counter(DeliveryAttempt.objects.values_list("outcome", flat=True)) == {
        "interrupted": 1,
        "failed": 1,
        "sent": 1,
    }


def test_a_delivery_that_kills_every_worker_is_dead_in_the_end(user):
    subscribed(user, webhook("http://127.0.0.1:1/"))
    changed(query_of(user))
    now, pace = timezone.now(), DeliveryPace(lease_s=30, attempts=4)
    for turn in range(6):
        claim(now + timedelta(minutes=turn), "dies", pace, lambda _: 9, ())
    assert states() == {"dead": 1}
    assert DeliveryAttempt.objects.filter(outcome="interrupted").count() == 4


def test_a_channel_that_is_off_keeps_what_is_to_be_sent(user, receiver):
    channel = webhook(receiver.url)
    subscribed(user, channel)
    channel.enabled = False
    channel.save()
    changed(query_of(user), 2)
    assert deliver_due() == 0
    assert states() == {"pending": 2}
    channel.enabled = True
    channel.save()
    assert deliver_due() == 2


def test_a_channel_that_does_not_load_fails_its_deliveries_and_no_others(user, receiver):
    broken = webhook(receiver.url, "broken")
    broken.kind = "pigeon"
    broken.save()
    for channel in (broken, webhook(receiver.url)):
        subscribed(user, channel)
    changed(query_of(user))
    deliver_due()
    assert states() == {"sent": 1, "failed": 1}
    # A busy machine may come to a second attempt.
    (error,) = set(DeliveryAttempt.objects.filter(outcome="failed").values_list("error", flat=True))
    assert error.startswith("a channel's kind must be one of") and error.endswith("got 'pigeon'")


def test_nobody_listens(user):
    subscribed(user, webhook(f"http://127.0.0.1:{free_port()}/"))
    changed(query_of(user))
    deliver_due()
    assert "Cannot connect to host 127.0.0.1" in DeliveryAttempt.objects.first().error


def turn(subscription, now):
    """Let the limit act at a time; return the subjects of what is free to be sent, in order."""
    Delivery.objects.filter(released__isnull=False).update(state="sent")
    release(now)
    return list(Delivery.objects.filter(state="pending", released__isnull=False).order_by("pk"))


def test_what_exceeds_the_limit_comes_as_one_digest_when_the_window_has_room(user, receiver):
    subscription = subscribed(user, webhook(receiver.url), limit=5, window_s=600)
    query, now = query_of(user), timezone.now()
    changed(query, 28)
    now = timezone.now()
    assert deliver_due() == 5
    assert len(receiver.taken) == 5
    assert states() == {"sent": 5, "pending": 23}
    assert turn(subscription, now + timedelta(seconds=590)) == []
    changed(query, 2, prefix="later")
    (digest, *single) = turn(subscription, now + timedelta(seconds=610))
    assert [delivery.document["incident"]["key"] for delivery in single] == ["later-0", "later-1"]
    document = digest.document
    assert (document["type"], document["count"], document["changes"]) == ("digest", 23, {"opened": 23})
    assert [told["incident"]["key"] for told in document["incidents"]] == [f"ship-{n}" for n in range(5, 28)]
    assert Delivery.objects.filter(digest=digest, state="digested").count() == 22
    assert Counter(Delivery.objects.exclude(state="digested").values_list("state", flat=True)) == {
        "sent": 5,
        "pending": 3,
    }


def test_never_more_than_the_limit_in_any_window(user):
    """Whatever comes when, and nothing is lost: what is single and what is within digests make everything."""
    subscription = subscribed(user, webhook("http://127.0.0.1:1/"), limit=3, window_s=60)
    query, dice, begin = query_of(user), random.Random(5), timezone.now() + timedelta(hours=1)
    sent, made = [], 0
    for second in range(0, 600, 5):
        now = begin + timedelta(seconds=second)
        if second < 400 and (count := dice.choice((0, 0, 0, 1, 2, 9))):
            changed(query, count, prefix=f"at-{second}")
            Delivery.objects.filter(released=None, held=False).update(next_attempt=now)
            made += count
        sent += [(second, delivery.document) for delivery in turn(subscription, now)]
    times = [second for second, _ in sent]
    assert all(sum(start < second <= start + 59 for second in times) <= 3 for start in range(600))
    keys = [
        told["incident"]["key"]
        for _, document in sent
        for told in (document["incidents"] if document["type"] == "digest" else [document])
    ]
    assert len(keys) == len(set(keys)) == made > 60
    assert Delivery.objects.filter(released=None).exclude(state="digested").count() == 0
    assert any(document["type"] == "digest" for _, document in sent)


def test_a_message_whose_delivery_failed_takes_its_place_in_the_limit(user):
    subscribed(user, webhook("http://127.0.0.1:1/"), limit=2, window_s=600)
    changed(query_of(user), 5)
    now = timezone.now()
    release(now)
    assert Delivery.objects.filter(released__isnull=False).update(state="failed") == 2
    Delivery.objects.filter(released=None).update(next_attempt=now)
    release(now + timedelta(seconds=300))
    assert Delivery.objects.filter(released__isnull=False).count() == 2


def test_a_limit_that_is_removed_holds_nothing_back(user):
    subscription = subscribed(user, webhook("http://127.0.0.1:1/"), limit=1, window_s=600)
    changed(query_of(user), 3)
    now = timezone.now()
    release(now)
    subscription.limit = None
    subscription.save()
    assert len(turn(subscription, now + timedelta(seconds=601))) == 2


def test_what_is_long_over_is_deleted_and_what_is_open_is_kept(user, pace):
    subscribed(user, webhook("http://127.0.0.1:1/"))
    changed(query_of(user), 4)
    long_ago = timezone.now() - timedelta(seconds=DeliveryPace().kept_s + 1)
    Delivery.objects.update(created=long_ago, settled=None)
    for delivery, state in zip(Delivery.objects.all()[:3], ("sent", "dead", "digested"), strict=True):
        Delivery.objects.filter(pk=delivery.pk).update(state=state, settled=long_ago)
        DeliveryAttempt.objects.create(delivery=delivery, outcome="failed")
    assert tasks.trim_deliveries() == 3
    assert states() == {"pending": 1}
    assert not DeliveryAttempt.objects.exists()


def test_operators_are_told_of_alarms_that_reach_nobody(user, receiver, pace):
    assert list(undelivered()) == []
    pace.DELIVERY_PACE = DeliveryPace(first_retry_s=0.01, longest_retry_s=0.01, attempts=1)
    receiver.always = "refuse"
    subscribed(user, webhook(receiver.url))
    changed(query_of(user), 2)
    deliver_due()
    ((level, where, words),) = undelivered()
    assert (level, where) == ("bad", "alarms by hook")
    assert words.startswith("2 could not be delivered; see Deliveries in the admin. the receiver must answer 2xx")
    Delivery.objects.update(state="failed", settled=None, created=timezone.now() - timedelta(minutes=6))
    ((level, _, words),) = undelivered()
    assert level == "warn" and words.startswith("2 are not delivered yet. the receiver must answer 2xx")

"""What is special about the logs on Kafka: other processes, brokers that are killed, names, and the setting."""

import gc
import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
import redis
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException

from bench.live import PATIENCE_S, wait_for
from bench.ports import free_port
from streaming.errors import LookoutError
from streaming.eventlog import FIRST, Bound, BoundedEntry, Stamp, open_log
from streaming.eventlog.kafka import KafkaEventLog, end_connections
from streaming.eventlog.kafka.connection import Connection
from streaming.eventlog.kafka.patience import KafkaUnavailable
from streaming.eventlog.kafka.records import TopicNames
from streaming.eventlog.kafka.transactions import StampedProducer, Transactions
from streaming.settings import EngineSettings

KEPT = Bound(10**9, 10**9)
# Within this time, each call has found that nobody listens where the broker was.
AWAY_S = 3.0


def once(name, number):
    return Stamp("p", "e", number), [BoundedEntry(name, {"n": number}, KEPT)]


class Doubtful:
    """A consumer of which the first question about one of the ends of a topic fails, as when a broker has come back."""

    def __init__(self, consumer, failing, asked):
        self._consumer, self._failing, self._asked = consumer, failing, asked

    def offsets_for_times(self, places, timeout):
        (place,) = places
        if place.offset == self._failing and "failed" not in self._asked:
            self._asked.append("failed")
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return self._consumer.offsets_for_times(places, timeout=timeout)

    def __getattr__(self, name):
        return getattr(self._consumer, name)


def numbers(log, name):
    return [int(entry.fields[b"n"]) for entry in log.read(name)]


def test_of_two_processes_that_append_the_same_each_entry_is_appended_once(kafka_servers):
    prefix = uuid.uuid4().hex
    told = []

    def append(patience_s):  # each patience has a connection of its own, as each process has
        log = KafkaEventLog(kafka_servers, prefix, patience_s)
        for number in range(12):
            told.append(log.append_once(*once("one", number)))

    both = [threading.Thread(target=append, args=[patience_s]) for patience_s in (30.0, 31.0)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert numbers(KafkaEventLog(kafka_servers, prefix), "one") == list(range(12))
    assert sorted(told) == [False] * 12 + [True] * 12


def test_what_a_process_has_not_committed_is_never_read_and_its_successor_appends_it(kafka_servers):
    prefix = uuid.uuid4().hex
    log = KafkaEventLog(kafka_servers, prefix)
    log.append_once(*once("one", 1))
    dying = Transactions(Connection(kafka_servers, prefix, 32.0))
    _, producer = dying._of(*once("one", 2))
    producer.begin()
    assert producer.append(*once("one", 2))  # and it dies before the commit
    assert numbers(log, "one") == [1]
    assert log.append_once(*once("one", 2))
    assert not log.append_once(*once("one", 2))
    assert numbers(log, "one") == [1, 2]
    with pytest.raises(Exception, match=r"(?i)fenced|epoch|fatal"):
        producer.commit()
    assert (numbers(log, "one"), log.length("one")) == ([1, 2], 2)


@pytest.mark.long
def test_a_log_that_does_not_show_in_time_what_was_appended_is_never_said_to_be_shorter(kafka_servers):
    prefix = uuid.uuid4().hex
    log = KafkaEventLog(kafka_servers, prefix)
    log.append_once(*once("one", 0))
    _, producer = Transactions(Connection(kafka_servers, prefix, 32.0))._of(Stamp("q", "e", 1), once("one", 1)[1])
    producer.begin()
    assert producer.append(Stamp("q", "e", 1), once("one", 1)[1])  # nobody reads on before it ends
    log.append_once(*once("one", 2))
    connection = log._shared.connection
    patience_s, connection.patience_s = connection.patience_s, 0.5
    for read in (log.read, log.read_back):
        with pytest.raises(KafkaUnavailable, match="TIMED_OUT"):
            read("one")
    connection.patience_s = patience_s
    producer.commit()
    assert numbers(log, "one") == [0, 1, 2]


@pytest.mark.parametrize("failing", [OFFSET_BEGINNING, OFFSET_END])
def test_a_log_is_never_empty_because_a_question_about_it_failed(kafka_servers, failing, monkeypatch):
    """The client library forgets that the first of two questions failed, if the second one is answered."""
    log = KafkaEventLog(kafka_servers, uuid.uuid4().hex)
    for number in range(3):
        log.append("one", {"n": number})
    asked, make = [], Connection.consumer

    def consumer(self, wait_ms):
        return Doubtful(make(self, wait_ms), failing, asked)

    monkeypatch.setattr(Connection, "consumer", consumer)
    end_connections()
    assert numbers(log, "one") == [0, 1, 2]
    assert [int(entry.fields[b"n"]) for entry in log.read_back("one")] == [2, 1, 0]
    assert asked.count("failed") == 1


@pytest.mark.long
def test_nothing_is_lost_or_doubled_if_the_broker_is_killed_while_entries_are_appended(kafka_broker):
    log, name = KafkaEventLog(kafka_broker.servers, uuid.uuid4().hex, patience_s=PATIENCE_S), "one"
    appended, errors = threading.Semaphore(0), []

    def append():
        try:
            for number in range(60):
                log.append("plain", {"n": number})
                log.append_once(*once(name, number))
                appended.release()
        except Exception as error:
            errors.append(error)

    appending = threading.Thread(target=append)
    appending.start()
    for _ in range(10):
        assert appended.acquire(timeout=PATIENCE_S)
    kafka_broker.kill()
    kafka_broker.start()
    appending.join(PATIENCE_S)
    assert not errors and not appending.is_alive()
    assert (numbers(log, "plain"), numbers(log, name)) == (list(range(60)), list(range(60)))


@pytest.mark.long
def test_every_call_that_begins_while_the_broker_is_away_is_answered_once_it_is_back(kafka_broker):
    log, many = KafkaEventLog(kafka_broker.servers, uuid.uuid4().hex, patience_s=PATIENCE_S), 110_000
    log.append("plain", {"n": 0})
    trimmed = log.append("trimmed", {"n": 0})
    for name in ("one", "gone"):
        log.append_once(*once(name, 0))
    # More than the client library keeps.
    room = [("many", {"n": number}) for number in range(many)]
    calls = {
        "append": lambda: log.append("plain", {"n": 1}),
        "append to a new log": lambda: log.append("new", {"n": 1}),
        "append_all": lambda: len(log.append_all(room)) == many,
        "append_once": lambda: log.append_once(*once("one", 1)),
        "append_once to a new log": lambda: log.append_once(*once("new bounded", 1)),
        "read": lambda: log.read("plain"),
        "read_back": lambda: log.read_back("one"),
        "poll": lambda: log.poll({"plain": FIRST}, 1, PATIENCE_S),
        "ends": lambda: log.ends({"plain": FIRST}, {"plain": 9})["plain"] > FIRST,
        "newest": lambda: log.newest("one") > FIRST,
        "trim": lambda: log.trim({"trimmed": trimmed}) is None,
        "length": lambda: log.length("plain"),
        "size": lambda: log.size("one"),
        "delete": lambda: log.delete(["gone"]) is None,
    }
    kafka_broker.kill()
    with ThreadPoolExecutor(len(calls)) as pool:
        called = {name: pool.submit(call) for name, call in calls.items()}
        wait(called.values(), timeout=AWAY_S)
        done = [name for name, future in called.items() if future.done()]
        kafka_broker.start()
        answers = {name: future.exception() or future.result() for name, future in called.items()}
    assert done == []
    assert {name: answer for name, answer in answers.items() if not answer or isinstance(answer, Exception)} == {}
    assert (numbers(log, "plain"), numbers(log, "new"), numbers(log, "many")) == ([0, 1], [1], list(range(many)))
    assert (numbers(log, "trimmed"), numbers(log, "gone")) == ([], [])
    assert (numbers(log, "one"), numbers(log, "new bounded")) == ([0, 1], [1])


@pytest.mark.long
def test_a_broker_that_has_lost_entries_fails_one_append_and_takes_the_next_one(kafka_broker):
    prefix = uuid.uuid4().hex
    log = KafkaEventLog(kafka_broker.servers, prefix, patience_s=PATIENCE_S)
    for number in range(5):
        log.append("plain", {"n": number})
    kafka_broker.kill()
    stored = kafka_broker.folder / "data" / f"{TopicNames(prefix).of('plain')}-0" / "00000000000000000000.log"
    os.truncate(stored, stored.stat().st_size * 3 // 5)
    kafka_broker.start()
    with pytest.raises(redis.ConnectionError, match="out of order"):
        log.append("plain", {"n": 5})
    log.append("plain", {"n": 6})
    assert numbers(log, "plain") == [0, 1, 2, 6]


@pytest.mark.parametrize("wrong", [ValueError, KafkaException])
def test_of_an_append_that_an_error_ends_nothing_is_committed_with_the_next_one(kafka_servers, wrong, monkeypatch):
    log = KafkaEventLog(kafka_servers, uuid.uuid4().hex)
    log.append_once(*once("one", 0))
    marked, errors = StampedProducer._mark, [wrong(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))]

    def mark(*arguments):
        if errors:
            raise errors.pop()
        marked(*arguments)

    monkeypatch.setattr(StampedProducer, "_mark", mark)
    with pytest.raises((ValueError, redis.ConnectionError)):
        log.append_once(*once("one", 1))
    assert log.append_once(*once("one", 2))
    assert numbers(log, "one") == [0, 2]


def test_a_kafka_that_does_not_answer_is_reported_as_a_redis_that_does_not():
    log = KafkaEventLog(f"127.0.0.1:{free_port()}", patience_s=0.3)
    for call in (
        lambda: log.append("one", {"n": 1}),
        lambda: log.length("one"),
        lambda: log.append_once(*once("one", 1)),
    ):
        with pytest.raises(redis.ConnectionError, match="Kafka does not answer"):
            call()


def test_logs_have_topics_of_different_names():
    logs = (
        "lookout:a:ingest:0",
        "lookout:a_b:control",
        "lookout:a-b:control",
        "lookout:a.b:control",
        "lookout:ä:control",
    )
    topics = [TopicNames("mine").of(log) for log in logs]
    assert len({topic.replace(".", "_") for topic in topics}) == len(logs)
    assert topics[0] == "mine.lookout.a.ingest.0"


@pytest.mark.parametrize("url", ["redis://one:1", "kafka://", "kafka://one", "kafka://one:x", "one:9092"])
def test_a_url_that_is_none_of_kafka_is_refused_with_the_rule_and_the_value(url):
    with pytest.raises(LookoutError, match=f"LOOKOUT_LOG_URL must be kafka://host:port.*got '{url}'"):
        EngineSettings.from_environ({"LOOKOUT_LOG_URL": url})


def test_the_setting_says_where_the_logs_are(kafka_servers, redis_client):
    url = EngineSettings.from_environ({"LOOKOUT_LOG_URL": f"kafka://{kafka_servers}/{uuid.uuid4().hex}"}).log_url
    log = open_log(redis_client, url)
    log.append("one", {"n": 7})
    assert (numbers(log, "one"), redis_client.keys()) == ([7], [])


@pytest.mark.long
def test_connections_that_end_leave_no_descriptors(kafka_servers):
    def opened():
        return len(os.listdir("/dev/fd"))

    before = opened()
    for _ in range(5):
        log = KafkaEventLog(kafka_servers, uuid.uuid4().hex)
        log.append_once(*once("one", 1))
        log.append("two", {"n": 2})
        assert numbers(log, "one") == [1]
        end_connections()
    del log
    wait_for(lambda: gc.collect() >= 0 and opened() < before + 5, lambda: f"{before} descriptors, got {opened()}")

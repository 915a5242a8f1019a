"""Servers of others, which a test starts on loopback; a test is skipped where Maven Central is not reached."""

import contextlib
import uuid

import pytest

from bench.kafka_broker import started
from bench.maven import NotReached
from bench.s3_server import BUCKET, s3_server
from streaming.eventlog.kafka import end_connections
from streaming.state.stores import RemoteStore


@contextlib.contextmanager
def _reached(server):
    """Run a server, or skip the test if it cannot be fetched."""
    with contextlib.ExitStack() as held:
        try:
            running = held.enter_context(server)
        except NotReached as error:
            pytest.skip(str(error))
        yield running


@pytest.fixture(scope="session")
def one_broker(tmp_path_factory):
    """Run a broker of Kafka for all tests."""
    with _reached(started(tmp_path_factory.mktemp("kafka"))) as broker:
        yield broker


@pytest.fixture
def kafka_broker(one_broker):
    """Yield a broker of Kafka that runs; end the connections of the test, each of which has tens of descriptors."""
    yield one_broker
    end_connections()


@pytest.fixture
def kafka_servers(kafka_broker) -> str:
    """Return the address of a broker."""
    return kafka_broker.servers


@pytest.fixture(scope="session")
def s3_environment(tmp_path_factory):
    """Run a server of S3; yield the environment that tells programs of it."""
    with _reached(s3_server(tmp_path_factory.mktemp("s3"))) as environment:
        yield environment


@pytest.fixture
def s3_store(s3_environment, monkeypatch) -> RemoteStore:
    """Return a store in a new folder of the bucket, told where it is as operators tell: by the environment."""
    for name, value in s3_environment.items():
        monkeypatch.setenv(name, value)
    return RemoteStore(f"s3://{BUCKET}/{uuid.uuid4().hex}", skip_instance_cache=True)

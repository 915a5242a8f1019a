"""A state folder is that of one space."""

import pytest

from streaming.engine.claim import claim
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.spaces import parse_space

ONE, TWO = (
    parse_space({"name": "prices", "dimensions": [{"name": name, "lo": 0, "hi": 9} for name in names]})
    for names in ("a", "ab")
)


@pytest.fixture
def log(redis_client):
    return Log(redis_client, "prices", 2)


def test_a_space_goes_on_from_its_own_state(log, tmp_path):
    assert not claim(tmp_path, ONE, log)
    epoch = Store(tmp_path, ONE).epoch()
    log.send("tick", now_us=1)
    assert not claim(tmp_path, ONE, log)
    assert Store(tmp_path, ONE).epoch() == epoch
    assert log.event_log.length(log.names.control) == 1


def test_a_space_that_is_defined_anew_begins_anew_with_empty_logs(log, tmp_path):
    claim(tmp_path, ONE, log)
    store = Store(tmp_path, ONE)
    epoch = store.epoch()
    store.save_registry(0, store.registry(0))
    (tmp_path / "checkpoint").mkdir()
    log.send("tick", now_us=1)
    log.event_log.append(log.names.ingest(1), {"block": b"of one dimension"})
    assert claim(tmp_path, TWO, log)
    assert {path.name for path in tmp_path.iterdir()} == {"space.json", "format"}
    assert Store(tmp_path, TWO).epoch() != epoch
    assert not log.client.keys("lookout:prices:*")
    assert not claim(tmp_path, TWO, log)


@pytest.mark.parametrize("format", [None, "1", "99"])
def test_a_state_of_another_format_begins_anew_with_the_logs_as_they_are(log, tmp_path, format):
    claim(tmp_path, ONE, log)
    store = Store(tmp_path, ONE)
    epoch = store.epoch()
    store.save_registry(0, store.registry(0))
    log.send("tick", now_us=1)
    (tmp_path / "format").unlink()
    if format:
        (tmp_path / "format").write_text(format)
    assert f"format {format or 1}" in claim(tmp_path, ONE, log)
    assert {path.name for path in tmp_path.iterdir()} == {"space.json", "format"}
    assert Store(tmp_path, ONE).epoch() != epoch
    assert log.event_log.length(log.names.control) == 1
    assert not claim(tmp_path, ONE, log)

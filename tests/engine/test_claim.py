"""The state of an engine is that of one space, and of this release's format."""

import pytest

from streaming.engine.claim import claim
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.spaces import EARTH, parse_space
from tests.servers.harness import Engine

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
    engine = Engine(tmp_path, space=ONE)
    engine.run([], [{"op": "tick", "now_us": 1}])
    store = engine.layout.store
    epoch = store.epoch()
    (tmp_path / "checkpoint").mkdir()
    log.send("tick", now_us=1)
    log.event_log.append(log.names.ingest(1), {"block": b"of one dimension"})
    assert claim(tmp_path, TWO, log)
    assert store.files.list() == ["space.json"] and not (tmp_path / "checkpoint").exists()
    assert Store(tmp_path, TWO).epoch() != epoch
    assert not log.client.keys("lookout:prices:*")
    assert not claim(tmp_path, TWO, log)


def test_a_state_of_an_earlier_format_is_removed_and_the_logs_stay(log, tmp_path):
    store = Store(tmp_path, EARTH)
    epoch = store.epoch()
    store.files.put("region/0/17.arrow", b"hot columns")
    log.send("tick", now_us=1)
    assert "earlier release" in claim(tmp_path, EARTH, log)
    assert store.files.list() == ["space.json"]
    assert Store(tmp_path, EARTH).epoch() != epoch
    assert log.client.xlen(log.names.control) == 1
    assert not claim(tmp_path, EARTH, log)

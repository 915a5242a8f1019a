"""A state folder is that of one space."""

import orjson
import pytest

from streaming.engine.claim import claim
from streaming.engine.store import LostState, Store
from streaming.logs import Log
from streaming.spaces import EARTH, parse_space

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
    assert {path.name for path in tmp_path.iterdir()} == {"space.json"}
    assert Store(tmp_path, TWO).epoch() != epoch
    assert not log.client.keys("lookout:prices:*")
    assert not claim(tmp_path, TWO, log)


def test_the_state_of_an_earlier_release_is_taken_for_the_space_s_own(log, tmp_path):
    store = Store(tmp_path, EARTH)
    epoch = store.epoch()
    path = tmp_path / "registry" / "0.json"
    path.write_bytes(orjson.dumps({"space": "earth", "queries": [], "ttl_us": [[1, 2]]}))
    assert not claim(tmp_path, EARTH, log)
    assert Store(tmp_path, EARTH).epoch() == epoch
    with pytest.raises(LostState, match="earlier release"):
        Store(tmp_path, EARTH).registry(1)

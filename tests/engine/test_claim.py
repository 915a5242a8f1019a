"""The state of an engine is that of one space, and of this release's format."""

import pytest

from streaming.engine.claim import claim
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.spaces import parse_space
from streaming.state.manifest import FORMAT
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
    engine = Engine(tmp_path, space=ONE, saved_every=1)
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


@pytest.mark.parametrize("format", [FORMAT - 1, FORMAT + 1])
def test_a_state_of_another_format_begins_anew_with_the_logs_as_they_are(log, tmp_path, monkeypatch, format):
    claim(tmp_path, ONE, log)
    engine = Engine(tmp_path, space=ONE, saved_every=1)
    with monkeypatch.context() as another_release:
        another_release.setattr("streaming.state.manifest.FORMAT", format)
        engine.run([], [{"op": "tick", "now_us": 1}])
    assert_begins_anew(log, tmp_path, engine.layout.store.epoch(), format)


def test_a_state_without_manifests_begins_anew(log, tmp_path):
    """Releases before there were manifests wrote a folder for each kind of state, and a file with the format."""
    store = Store(tmp_path, ONE)
    store.files.put("region/0/17.arrow", b"columns")
    store.files.put("format", b"2")
    (tmp_path / "checkpoint").mkdir()
    assert_begins_anew(log, tmp_path, store.epoch(), 2)


def test_a_state_whose_newest_manifest_is_damaged_is_of_the_format_of_the_one_before(log, tmp_path):
    engine = Engine(tmp_path, space=ONE, saved_every=1)
    for batch in range(2):
        engine.run([], [{"op": "tick", "now_us": batch}])
    (tmp_path / "manifests" / "1.json").write_bytes(b"damaged")
    assert not claim(tmp_path, ONE, log)
    assert engine.layout.store.files.list("parts")


def assert_begins_anew(log, root, epoch, format):
    log.send("tick", now_us=1)
    expected = f"in format {format}; this release reads format {FORMAT}"
    assert expected in claim(root, ONE, log)
    assert Store(root, ONE).files.list() == ["space.json"] and not (root / "checkpoint").exists()
    assert Store(root, ONE).epoch() != epoch
    assert log.event_log.length(log.names.control) == 1
    assert not claim(root, ONE, log)

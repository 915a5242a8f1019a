"""What the engine says of itself."""

from types import SimpleNamespace

from streaming.engine.report import report
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.spaces import EARTH


def test_the_engine_names_its_state_and_a_new_state_has_another_name(redis_client, tmp_path):
    log, before_its_first_batch = Log(redis_client, "earth", 2), SimpleNamespace(lastProgress=None)
    named = []
    for state in ("first", "first", "second"):
        report(log, before_its_first_batch, Store(tmp_path / state, EARTH).epoch())
        named.append(redis_client.hget(log.names.engine, "epoch"))
    assert named[0] == named[1] != named[2]

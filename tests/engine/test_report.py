"""What the engine says of itself."""

from streaming.engine.report import report
from streaming.engine.store import Store
from streaming.logs import Log
from streaming.spaces import EARTH


def test_the_engine_names_its_state_and_a_new_state_has_another_name(redis_client, tmp_path):
    log = Log(redis_client, "earth", 2)
    named = []
    for state in ("first", "first", "second"):
        report(log, Store(tmp_path / state, EARTH).epoch())
        named.append(redis_client.hget(log.names.engine, "epoch"))
    assert named[0] == named[1] != named[2]

"""That a join asks for far too much is known before much is looked at."""

from streaming.operators import allowance
from streaming.operators.allowance import SAMPLE, PairAllowance
from tests.servers.harness import Engine
from tests.servers.test_room import everything, fleet, refusals, registered


def test_that_a_join_asks_for_far_too_much_is_known_by_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(allowance, "MOST", 400_000)
    taken = []

    class Counted(PairAllowance):
        def take(self, pairs):
            taken.append(pairs)
            return super().take(pairs)

    monkeypatch.setattr("streaming.servers.region.stream_join.PairAllowance", Counted)
    engine = Engine(tmp_path, 1, 1, rescaled=0.0)
    engine.may_fail = True
    fragments = engine.run(fleet(0), [registered(1, everything())])
    assert refusals(fragments).keys() == {1}
    assert sum(taken) <= 2 * SAMPLE

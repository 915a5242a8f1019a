"""Some faults on purpose while a whole Lookout answers queries: nothing is lost, doubled or different."""

import numpy as np
import pytest

from tests.chaos.faults import FAULTS, schedule
from tests.chaos.run import Chaos, Options, Outcome

SHORT = Options(
    faults=5,
    rate=1_000,
    queries=24,
    objects=500,
    quiet=2,
    only=("kill-engine", "kill-redis", "kill-python-worker", "stop-web", "cut-connections"),
    stopped_s=3.0,
)


@pytest.mark.long
@pytest.mark.spark
async def test_five_faults_leave_every_answer_exact(live):
    live.clear()
    try:
        outcome = await Chaos(live, SHORT, print).run()
    finally:
        live.clear()
        live.run("drop_layer", "zones")
    print(outcome.report())
    assert outcome.exact, outcome.report()
    assert sum(map(len, outcome.recoveries.values())) == SHORT.faults
    assert outcome.compared > 2 * 3 * 20
    assert outcome.resumed > 0
    assert outcome.pairs > 0


def test_a_seed_decides_which_faults_come_and_each_comes_about_equally_often():
    names = schedule(list(FAULTS), 50, np.random.default_rng(7))
    assert names == schedule(list(FAULTS), 50, np.random.default_rng(7))
    assert names != schedule(list(FAULTS), 50, np.random.default_rng(8))
    times = [names.count(name) for name in FAULTS]
    assert sum(times) == 50 and max(times) - min(times) <= 1


@pytest.mark.parametrize("wrong", ["lost", "doubled", "differences"])
def test_a_run_is_exact_only_if_nothing_is_wrong(wrong):
    outcome = Outcome()
    assert outcome.exact
    getattr(outcome, wrong).append("something")
    assert not outcome.exact
    assert "something" in outcome.report()

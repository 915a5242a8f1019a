"""How many blocks a batch reads from each partition."""

from dataclasses import replace

import numpy as np

from tests.engine.test_intervals import BLOCKS, SHIPS, Machine, answers, one_by_one, run_all, sail
from tests.engine.test_state_survives import PLANS


def test_while_blocks_are_small_a_batch_reads_more_of_them(tmp_path, redis_server, redis_client):
    machine, rng = Machine(tmp_path / "engine", redis_server, seed=6), np.random.default_rng(6)
    machine.pace = replace(machine.pace, interval_s=1.0)
    log, places, blocks = machine.log, rng.uniform(-10, 10, (SHIPS, 2)), 200
    log.send("register", query=0, revision=1, plan=PLANS[0])
    for step in range(blocks):
        log.ingest(sail(rng, places, step), "ships", step * 1_000_000)
    run_all(machine, trouble=False)
    told = answers(log)
    assert told == one_by_one(tmp_path / "truth", redis_server, machine.layout(0).store.epoch())
    assert len(told) == machine.point.batch + 1 < blocks / BLOCKS / 4 and any(told)

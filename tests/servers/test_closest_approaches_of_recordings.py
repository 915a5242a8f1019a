"""Closest approaches in a recorded feed equal all pairs of ships by numpy, however the feed is cut into batches."""

import numpy as np
import pytest

from streaming.property_columns import number_columns
from tests.decoders.feeds import read_recording
from tests.live.truth import decoded
from tests.servers.harness import Client, Engine
from tests.servers.test_closest_approaches import GEOD, closest_approach

pytestmark = pytest.mark.recordings

SECOND_US = 1_000_000
WITHIN_M, WITHIN_S, GAP_S = 2_000.0, 1_200.0, 300.0
# The straight lines of the truth, in a plane about each pair, may be this far from the geodesics.
NEAR_M, NEAR_S = 20.0, 10.0


def truth(newest):
    """Return the pairs that certainly are in the answer, and those that may be: of all newest reports, in planes."""
    time_s = newest["time_us"].to_numpy() / SECOND_US
    course_deg, speed_mps = number_columns(newest["properties"], ["course_deg", "speed_mps"])
    still = ~(np.isfinite(course_deg) & (speed_mps > 0))
    speed_mps, course_deg = np.where(still, 0, speed_mps), np.where(still, 0, course_deg)
    bounds = np.array(newest["bounds"].to_pylist())
    one, other = np.triu_indices(len(time_s), 1)
    near = np.flatnonzero(
        (np.abs(time_s[one] - time_s[other]) <= GAP_S) & (np.abs(bounds[one, 1] - bounds[other, 1]) < 2)
    )
    one, other = one[near], other[near]
    latest_s = np.maximum(time_s[one], time_s[other])
    places = [
        GEOD.fwd(bounds[side, 0], bounds[side, 1], course_deg[side], speed_mps[side] * (latest_s - time_s[side]))[:2]
        for side in (one, other)
    ]
    azimuth, _, apart_m = GEOD.inv(*places[0], *places[1])
    x, y = apart_m * np.sin(np.radians(azimuth)), apart_m * np.cos(np.radians(azimuth))
    east, north = speed_mps * np.sin(np.radians(course_deg)), speed_mps * np.cos(np.radians(course_deg))
    dx, dy = east[other] - east[one], north[other] - north[one]
    square = dx * dx + dy * dy
    with np.errstate(divide="ignore", invalid="ignore"):
        after_s = -(x * dx + y * dy) / square
        far_m = np.hypot(x + dx * after_s, y + dy * after_s)
        gap_s = NEAR_S + NEAR_M / np.sqrt(square)
    fast = (speed_mps[one] > 350) | (speed_mps[other] > 350)
    keys = newest["key"].to_pylist()
    perhaps = (
        (far_m <= WITHIN_M + NEAR_M) & (after_s > -gap_s) & (after_s < WITHIN_S + gap_s) & ~fast & (square > 0.009)
    )
    surely = (far_m <= WITHIN_M - NEAR_M) & (after_s > gap_s) & (after_s < WITHIN_S - gap_s) & ~fast & (square > 0.011)
    return ({frozenset((keys[one[at]], keys[other[at]])) for at in np.flatnonzero(some)} for some in (surely, perhaps))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_ships_of_a_recording_come_close_as_all_pairs_tell(tmp_path, shared_data, seed):
    elements = decoded({"kind": "ais"}, "ships", read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    rng, engine, client, done = np.random.default_rng(seed), Engine(tmp_path, 2, 4), Client(), 0
    client.quiet = {1}
    plan = closest_approach(WITHIN_M, WITHIN_S, "ships", gap_s=GAP_S)
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    while done < elements.num_rows:
        count = int(rng.integers(1, 12_000))
        client.receive(engine.run([("ships", 0, elements.slice(done, count))], control))
        done, control = done + count, []
    newest = elements.to_pandas().sort_values("version", kind="stable").drop_duplicates("key", keep="last")
    newest = elements.take(newest.index.to_numpy())
    surely, perhaps = truth(newest)
    answer = [frozenset(pair) for pair in client.answers[1]]
    assert len(answer) == len(set(answer)), "a pair is told one way"
    assert len(surely) > 50
    assert surely <= set(answer) <= perhaps

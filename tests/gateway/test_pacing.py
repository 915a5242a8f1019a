import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.gateway.clock import SECOND_US
from streaming.gateway.config import GatewayConfig
from streaming.gateway.definitions import StreamDefinition
from streaming.gateway.health import StreamHealth
from streaming.gateway.pacing import LEAP_US, next_lap, restamped, schedule
from streaming.gateway.stream import Outlet, RunningStream
from streaming.gateway.transports.base import Replay
from tests.gateway.scenes import DECODER, SteppedClock, elements, feature

NOW_US = 1_700_000_000 * SECOND_US
TIMES = st.lists(st.integers(0, LEAP_US), min_size=1, max_size=40).map(lambda times: np.array(times, dtype=np.int64))
SPEEDS = st.sampled_from([0.0, 0.5, 1.0, 4.0, 60.0])


class Played:
    """A queue that notes when elements came."""

    def __init__(self, clock):
        self.clock, self.rows = clock, []

    async def put(self, table, heard_us):
        self.rows += [(self.clock.now_us(), time_us) for time_us in table["time_us"].to_pylist()]


async def played(path, clock=None, **options):
    """Replay a file on a stepped clock; return the (wall-clock, event) times and what the stream said of itself."""
    clock = clock or SteppedClock(NOW_US)
    queue, health = Played(clock), StreamHealth("earth")
    transport = {"kind": "file", "path": str(path), **options}
    outlet = Outlet(queue, health, clock, GatewayConfig())
    await RunningStream(StreamDefinition("s", "earth", transport, DECODER), outlet).run()
    return queue.rows, health


@given(TIMES, SPEEDS)
def test_elements_are_due_at_the_running_maximum_of_their_times(times, speed):
    _, due_us, _ = schedule(None, times, Replay(speed, False), NOW_US)
    elapsed = (np.maximum.accumulate(times) - times[0]) / speed if speed else np.zeros(len(times))
    assert np.abs(due_us - NOW_US - elapsed).max() <= 1


@given(TIMES, SPEEDS, st.integers(1, 39))
def test_any_cut_of_a_recording_gives_the_same_schedule(times, speed, cut):
    replay = Replay(speed, True)
    whole = schedule(None, times, replay, NOW_US)
    progress, due_us, stamp_us = schedule(None, times[:cut], replay, NOW_US)
    if len(times) > cut:
        progress, more_due_us, more_stamp_us = schedule(progress, times[cut:], replay, NOW_US)
        due_us, stamp_us = np.r_[due_us, more_due_us], np.r_[stamp_us, more_stamp_us]
    assert progress == whole[0]
    assert (due_us == whole[1]).all() and (stamp_us == whole[2]).all()


@given(TIMES, SPEEDS, st.integers(2, 4))
def test_each_lap_of_a_restamped_recording_is_later_than_the_one_before(times, speed, laps):
    replay, progress, end_us = Replay(speed, True), None, NOW_US - 1
    for _ in range(laps):
        progress, _, stamp_us = schedule(next_lap(progress, replay, NOW_US), times, replay, NOW_US)
        assert stamp_us.min() > end_us
        end_us = stamp_us.max()


def test_a_leap_of_the_recording_is_not_waited_for():
    times = np.array([0, 1, 1 + 2 * LEAP_US, 2 + 2 * LEAP_US, 3]) * 1
    _, due_us, _ = schedule(None, times, Replay(1.0, False), NOW_US)
    assert (due_us - NOW_US).tolist() == [0, 1, 1, 2, 2]


def test_a_replay_that_nobody_took_goes_on_from_where_it_stood():
    replay = Replay(1.0, True)
    progress, _, _ = schedule(None, np.array([0, 10 * SECOND_US]), replay, NOW_US)
    late_us = NOW_US + 600 * SECOND_US
    _, due_us, stamp_us = schedule(progress, np.array([11, 12]) * SECOND_US, replay, late_us)
    assert (due_us - late_us).tolist() == [0, SECOND_US]
    assert stamp_us.tolist() == due_us.tolist()


def test_restamping_moves_versions_by_as_much_as_times():
    moved = restamped(elements(["a", "b"], [5, 7]), np.array([105, 207]))
    assert moved["time_us"].to_pylist() == moved["version"].to_pylist() == [105, 207]
    assert moved.schema == elements(["a"], [1]).schema


@pytest.mark.parametrize("speed", [1, 4])
async def test_a_file_is_replayed_at_its_recorded_speed_times_n(tmp_path, speed):
    path = tmp_path / "recording.geojsonl.gz"
    path.write_bytes(gzip.compress(b"".join(feature("a", 1_000 + second) for second in (0, 10, 5, 40, 100))))
    rows, health = await played(path, speed=speed)
    assert [time_us // SECOND_US - 1_000 for _, time_us in rows] == [0, 10, 5, 40, 100]
    waited_s = np.array([(at_us - NOW_US) / SECOND_US * speed for at_us, _ in rows])
    assert np.abs(waited_s - [0, 10, 10, 40, 100]).max() < 0.2
    assert (health.state, health.elements) == ("finished", 5)


async def test_a_restamped_file_bears_the_time_of_its_replay(tmp_path):
    path = tmp_path / "recording.geojsonl"
    path.write_bytes(b"".join(feature("a", 1_000 + second) for second in range(0, 60, 10)))
    rows, _ = await played(path, speed=2, restamp=True)
    assert all(abs(at_us - time_us) < 0.1 * SECOND_US for at_us, time_us in rows)
    assert rows[-1][1] - rows[0][1] == 25 * SECOND_US


async def test_a_file_at_speed_zero_is_not_waited_for(tmp_path):
    path = tmp_path / "recording.geojsonl"
    path.write_bytes(b"".join(feature("a", 1_000 * second) for second in range(50)))
    rows, _ = await played(path, speed=0)
    assert len(rows) == 50
    assert {at_us for at_us, _ in rows} == {NOW_US}

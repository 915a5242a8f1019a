"""Encounters in recorded feeds equal pandas and GeoPandas, however the feed is cut into batches."""

import numpy as np
import pandas
import pytest

from streaming.results import LEFT
from streaming.results.netting import net
from tests.decoders.feeds import read_recording
from tests.decoders.test_recordings import BUSES
from tests.live.truth import decoded
from tests.servers.harness import Engine
from tests.servers.test_time_joins_of_recordings import near, reports

pytestmark = pytest.mark.recordings

SECOND_US = 1_000_000
CHUNK_US = 300 * SECOND_US
COLUMNS = ["key", "partner", "since_us", "until_us"]


def expected(known, distance_m, for_s, gap_s):
    """The encounters of all reports, told with both keys in either order."""
    known = known.drop_duplicates(["key", "time_us"], keep="last").sort_values(["key", "time_us"])
    following = known.groupby("key").time_us.shift(-1).fillna(np.inf)
    known = known.assign(end_us=np.minimum(following, known.time_us + gap_s * SECOND_US), row=range(len(known)))
    found = []
    for start_us in range(int(known.time_us.min()), int(known.end_us.max()), CHUNK_US):
        some = known[(known.time_us < start_us + CHUNK_US) & (known.end_us >= start_us)]
        if len(some):
            found.append(near(some, some, distance_m))
    pairs = pandas.concat(found).drop_duplicates(["row_left", "row_right"])
    pairs = pairs[pairs.key != pairs.partner]
    pairs["since_us"] = np.maximum(pairs.time_us, pairs.partner_time_us)
    pairs["until_us"] = np.minimum(pairs.end_us_left, pairs.end_us_right)
    pairs = pairs[pairs.since_us < pairs.until_us].sort_values(["key", "partner", "since_us"])
    follows = (pairs[["key", "partner"]] == pairs[["key", "partner"]].shift()).all(axis=1)
    follows &= pairs.since_us == pairs.until_us.shift()
    encounters = pairs.assign(number=(~follows).cumsum()).groupby("number")
    whole = encounters.agg({"key": "first", "partner": "first", "since_us": "first", "until_us": "last"})
    return whole[whole.until_us - whole.since_us >= for_s * SECOND_US]


def play(folder, elements, plan, seed):
    """Run a feed through an engine in random batches; return the encounters that ended, as a data frame."""
    rng, engine, done, told, late = np.random.default_rng(seed), Engine(folder, 2, 4), 0, [], 0
    times = elements["time_us"].to_numpy()
    plan |= {"lateness_s": float((np.maximum.accumulate(times) - times).max() / SECOND_US), "idle_s": 100}
    control = [{"op": "register", "query": 1, "revision": 1, "plan": plan}]
    while done < elements.num_rows:
        count = int(rng.integers(0, 4_000))
        fragments = engine.run([(plan["stream"], 0, elements.slice(done, count))], control)
        late += sum(fragment.counters.get("late", 0) for fragment in fragments)
        told.append(net(fragments).to_pandas())
        done, control = done + count, []
        if rng.random() < 0.2:
            engine.restart()
    # In the silence event time goes on, so that all encounters end.
    control = [{"op": "tick", "now_us": 30 * 86_400 * SECOND_US}]
    while len(told[-1]) or control:
        told.append(net(engine.run([], control)).to_pandas())
        control = []
    assert late == 0
    rows = pandas.concat(told)
    return rows[rows.sign == LEFT]


def same(told, known):
    """Both are the same encounters, each once, and there are some."""
    assert len(known) > 20
    other = known.assign(key=np.minimum(known.key, known.partner), partner=np.maximum(known.key, known.partner))
    mine = told.assign(key=np.minimum(told.key, told.partner), partner=np.maximum(told.key, told.partner))
    other = other.drop_duplicates(COLUMNS)
    frames = [frame[COLUMNS].sort_values(COLUMNS, ignore_index=True) for frame in (mine, other)]
    pandas.testing.assert_frame_equal(*frames, check_dtype=False)


@pytest.mark.long
def test_ships_within_500_m_of_each_other_for_two_minutes(tmp_path, shared_data):
    elements = decoded({"kind": "ais"}, "ships", read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    join = {"stream": "ships", "predicate": "dwithin", "distance": 500}
    plan = {"stream": "ships", "kind": "encounter", "join": join, "for_s": 120, "gap_s": 300}
    told = play(tmp_path, elements, plan, 1)
    same(told, expected(reports(elements), 500, 120, 300))


def test_buses_within_30_m_of_each_other_for_a_minute(tmp_path, shared_data):
    elements = decoded(BUSES, "buses", read_recording(shared_data / "buses" / "2015-03-07.csv.gz"))
    elements = elements.sort_by("time_us").slice(10_000, 15_000)
    join = {"stream": "buses", "predicate": "dwithin", "distance": 30}
    plan = {"stream": "buses", "kind": "encounter", "join": join, "for_s": 60, "gap_s": 120}
    told = play(tmp_path, elements, plan, 2)
    same(told, expected(reports(elements), 30, 60, 120))

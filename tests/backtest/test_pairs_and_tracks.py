"""Back-tests of closest approaches and tracks, and of rules over them, tell what was told live of a recording."""

import random
from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from streaming.backtest import BacktestRequest, Playing, StoredElements
from streaming.history import History
from streaming.replay.answers import AnswerPages
from streaming.results import ENTERED, LEFT, PASSED
from streaming.results.netting import net
from streaming.spaces import EARTH
from tests.decoders.feeds import read_recording
from tests.live.truth import decoded
from tests.servers.harness import Engine

pytestmark = pytest.mark.recordings

US, STREAM = 1_000_000, "ships"
START_S, RATE, REST_S = 1_700_000_000, 200, 150
REPORTS = 5_000
# In the recording, each ship reports a few times.
CLOSE, TRACK, CLOSE_RULE, TRACK_RULE, DWELL_RULE = 1, 2, 10, 11, 12
PLANS = {
    CLOSE: {"stream": STREAM, "kind": "closest_approach", "within_m": 1_000, "within_s": 120, "mirrored": True},
    TRACK: {"stream": STREAM, "kind": "track", "accuracy": 10, "fastest_m_s": 60},
    CLOSE_RULE: {"stream": STREAM, "kind": "rule", "when": {"query": CLOSE}},
    TRACK_RULE: {"stream": STREAM, "kind": "rule", "when": {"query": TRACK}},
    DWELL_RULE: {"stream": STREAM, "kind": "rule", "when": {"query": TRACK}, "for_s": 4},
}


@pytest.fixture(scope="module")
def reports(shared_data):
    """The first reports of a recording, and the middle of their places."""
    elements = decoded({"kind": "ais"}, STREAM, read_recording(shared_data / "ais" / "ais-sample.txt.gz"))
    return elements.slice(0, REPORTS)


def plans(reports):
    """Return the plans; the area of the track is a quarter of the places."""
    bounds = np.array(reports["bounds"].to_pylist())
    (west, south), (east, north) = (np.quantile(bounds[:, :2], part, axis=0).tolist() for part in (0.25, 0.75))
    return PLANS | {TRACK: PLANS[TRACK] | {"area": {"lo": [west, south], "hi": [east, north]}}}


class Live:
    """A live engine that cuts its batches at random, and whose clock is set at the end of each second."""

    def __init__(self, folder, seed, asked):
        self.rng = random.Random(seed)
        self.engine = Engine(folder, self.rng.randint(1, 3), self.rng.randint(1, 4))
        self.told = []
        register = [{"op": "register", "query": n, "revision": 1, "plan": plan} for n, plan in asked.items()]
        stream = {"op": "stream", "stream": STREAM, "ttl_s": None, "stored": True}
        self.run(START_S, [], [{"op": "tick", "now_us": START_S * US}, stream, *register])

    def run(self, second, blocks, control):
        self.told += [(second, *row) for row in told(net(self.engine.run(blocks, control)))]

    def second(self, second, table):
        """Play the reports of a second."""
        cuts = sorted(self.rng.sample(range(RATE), self.rng.randint(0, 3))) if table.num_rows else []
        for begin, end in zip([0, *cuts], [*cuts, RATE], strict=True):
            last = end == RATE
            blocks = (
                [(STREAM, second * US + row * (US // RATE), table.slice(row, 1)) for row in range(begin, end)]
                if table.num_rows
                else []
            )
            self.run(second + 1, blocks, [{"op": "tick", "now_us": (second + 1) * US}] if last else [])


def told(rows):
    """Return what enters and leaves answers."""
    return [
        (row["query"], row["key"], row["partner"], row["sign"], row["time_us"], row["reason"])
        for row in rows.to_pylist()
        if row["sign"] in (ENTERED, LEFT)
    ]


def answers(rows, query):
    """Return the answer of a query after each second in which it changed."""
    answer, after = set(), {}
    for second, number, key, partner, sign, *_ in rows:
        if number == query:
            (answer.add if sign == ENTERED else answer.discard)((key, partner))
            after[second] = frozenset(answer)
    seconds = sorted(after)
    return {
        second: after[second]
        for place, second in enumerate(seconds)
        if after[second] != (after[seconds[place - 1]] if place else frozenset())
    }


def alarms(rows, query):
    """Return the times of the alarms of each object, and of their ends."""
    found = defaultdict(list)
    for _, number, key, _, sign, time_us, _ in rows:
        if number == query:
            found[key].append((sign, time_us / US))
    return found


def by_second(batches):
    """Return what enters and leaves answers, with the second after it: its last batch sets the clock."""
    found, waiting, clock_us = [], [], START_S * US
    for played in batches:
        waiting += told(played.rows)
        if played.time_us > clock_us:
            found += [(played.time_us // US, *row) for row in waiting]
            waiting, clock_us = [], played.time_us
    return found + [(clock_us // US + 1, *row) for row in waiting]


@pytest.mark.long
@pytest.mark.separate_seeds(1, 2)
def test_a_back_test_and_a_replay_tell_what_was_told_live(tmp_path, reports, seed):
    asked = plans(reports)
    live, seconds = Live(tmp_path, seed, asked), REPORTS // RATE
    for second in range(seconds + REST_S):
        live.second(START_S + second, reports.slice(second * RATE, RATE if second < seconds else 0))
    question = BacktestRequest(asked, (START_S * US, (START_S + seconds + REST_S) * US), {STREAM: None})

    def elements():
        return StoredElements(History(tmp_path / "history", EARTH), question, 1_000)

    found = by_second(Playing(question).play(elements()))
    for rows in (live.told, found):
        assert any(row[1] == CLOSE and row[-1] == PASSED for row in rows)
    close = answers(live.told, CLOSE)
    assert len(close) > 20
    assert answers(found, CLOSE) == close
    # Tracks make the clock go on with each second. Without them, it goes to when the next pair has passed.
    alone = BacktestRequest({CLOSE: asked[CLOSE]}, question.span, {STREAM: None})
    assert answers(by_second(Playing(alone).play(elements())), CLOSE) == close
    # Each report counts in a track, so it does not matter how they are cut.
    tracks = [
        sorted((key, sign, time_us) for _, number, key, _, sign, time_us, _ in rows if number == TRACK)
        for rows in (live.told, found)
    ]
    assert len(tracks[0]) > 20 and tracks[0] == tracks[1]
    for query in (TRACK_RULE, DWELL_RULE, CLOSE_RULE):
        one, other = alarms(live.told, query), alarms(found, query)
        assert len(one) > 10 and one.keys() == other.keys()
        for key, times in one.items():
            # What a partner does happens at the engine's clock, which is set once a second.
            assert [sign for sign, _ in times] == [sign for sign, _ in other[key]], (query, key)
            apart = [abs(here - there) for (_, here), (_, there) in zip(times, other[key], strict=True)]
            assert max(apart) <= (1 if query == CLOSE_RULE else 0), (query, key, times, other[key])

    replayed = AnswerPages(Playing(question), elements(), asked)
    rows = pa.concat_tables([replayed.page(question.span[1], 10**9, 300.0).rows]).to_pylist()
    again = [
        (
            row["at_us"] // US,
            row["query"],
            row["key"],
            row["partner"] or None,
            row["sign"],
            row["time_us"],
            row["reason"],
        )
        for row in rows
        if row["sign"] in (ENTERED, LEFT)
    ]
    assert answers(again, CLOSE) == close
    assert sorted(row[1:4] for row in again) == sorted(row[1:4] for row in found)

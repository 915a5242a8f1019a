"""What rules told live of recordings, and what a back-test tells of what was stored meanwhile: the same alarms."""

import time
from collections import Counter
from dataclasses import replace

import pytest

from streaming.backtest import Asked, Playing, StoredElements
from streaming.history import History
from streaming.results import SIGNS
from streaming.spaces import EARTH
from tests.live.test_recordings import RECORDINGS, corners

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

US = 1_000_000
# Faster than it was recorded: five minutes in twenty seconds.
SPEED = 15
# After this time nothing more happens: no rule waits for longer.
REST_S = 9


def rules(recording, inside, other):
    """Return plans of rules over two ranges of a recording, by name."""
    rule = {"stream": recording.stream, "kind": "rule"}
    in_it, in_other = {"query": inside}, {"query": other}
    return {
        "at once": rule | {"when": in_it},
        "stays": rule | {"when": in_it, "for_s": 3},
        "not there": rule | {"when": {"all": [in_other, {"not": in_it}]}, "for_s": 2, "rearm_s": 4},
        "until": rule | {"when": in_it, "until": in_other, "for_s": 1},
        "often": rule | {"when": in_it, "rate": {"more_than": 1, "within_s": 6}},
    }


@pytest.mark.parametrize("recording", RECORDINGS[:1], ids=lambda recording: recording.stream)
async def test_a_back_test_of_a_stored_recording_tells_the_alarms_that_were_told_live(
    live, shared_data, tmp_path, recording
):
    path, recording = recording.path(shared_data, tmp_path), replace(recording, stream=f"{recording.stream}_kept")
    transport = {"kind": "file", "path": str(path), "speed": SPEED}
    live.add_stream(recording.stream, transport, recording.decoder, enabled=False, stored=True)
    async with live.monitor("ann", "json") as monitor:
        # Ships in motion cross the border of a filter, and more often than that of a box.
        ranges = [
            recording.plan(corners(recording.box), where=recording.where),
            recording.plan(corners(recording.other)),
        ]
        plans = {await monitor.register(f"range {number}", plan): plan for number, plan in enumerate(ranges)}
        for name, plan in rules(recording, *plans).items():
            plans[await monitor.register(name, plan)] = plan
        await monitor.running(*plans)
        monitor.kept = {number: [] for number in plans}
        begin_us = now_us()
        live.enable_stream(recording.stream)
        finished = lambda: live.health(recording.stream)["state"] == "finished" and live.log.backlog() == 0  # noqa: E731
        await monitor.until(finished, lambda: f"{live.health(recording.stream)}, backlog {live.log.backlog()}")
        end_us = now_us() + REST_S * US
        await monitor.until(lambda: now_us() > end_us + 2 * US, lambda: "the end of all alarms by a rate")
        asked = Asked(plans, (begin_us, end_us), {recording.stream: None})
        elements = StoredElements(History(live.home / "history", EARTH), asked)
        found = {number: [] for number in plans}
        for played in Playing(asked).play(elements):
            for row in played.rows.to_pylist():
                found[row["query"]].append((row["key"], SIGNS[row["sign"]], row["time_us"]))
        for number, plan in plans.items():
            told = [(row["key"], row["sign"], row["time_us"]) for row in monitor.kept[number] if row["sign"] in "+-"]
            back = [row for row in found[number] if row[1] in "+-"]
            assert len(told) > 20, plan
            assert differences(told, back) == ([], []), plan
        live.remove_stream(recording.stream)
        await monitor.until(lambda: not any(monitor.answers.values()), "the stream's objects leave every answer")
        for query in plans:
            await monitor.request("query.cancel", query=query)


def differences(told, back):
    """Return what was told live alone, and what the back-test tells alone."""
    return sorted((Counter(told) - Counter(back)).elements()), sorted((Counter(back) - Counter(told)).elements())


def now_us():
    return time.time_ns() // 1_000

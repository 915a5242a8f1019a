"""What rules told live of recordings, and what a back-test tells of what was stored meanwhile: the same alarms."""

import gzip
import time
from collections import Counter
from dataclasses import replace

import pytest

from streaming.backtest import BacktestRequest, Playing, StoredElements
from streaming.history import History
from streaming.results import SIGNS
from streaming.spaces import EARTH
from tests.live.test_recordings import RECORDINGS, WORLD, corners

pytestmark = [pytest.mark.spark, pytest.mark.recordings]

US = 1_000_000
# Forty seconds of it, as fast as it was recorded.
LINES = 11_700
# Courses change by tenths of a degree from report to report, so many ships come and go. The remainder by a power of two
# is exact; of division by another number, Polars rounds one row in another way than several.
FLICKERING = "(course_deg * 10) % 4 > 1.5"
# The live engine goes on for so long after the recording, and is compared up to so long before the back-test's end.
REST_S, SLACK_S = 12, 3


def rules(recording, inside, other):
    """Return plans of rules over two ranges of a recording, by name."""
    rule = {"stream": recording.stream, "kind": "rule"}
    in_it, in_other = {"query": inside}, {"query": other}
    return {
        "at once": rule | {"when": in_it},
        "stays": rule | {"when": in_it, "for_s": 3},
        "not there": rule | {"when": {"all": [in_other, {"not": in_it}]}, "for_s": 2, "rearm_s": 4},
        "until": rule | {"when": in_it, "until": in_other, "for_s": 1},
        "often": rule | {"when": in_it, "rate": {"more_than": 1, "within_s": 40}},
    }


@pytest.mark.long
@pytest.mark.parametrize("recording", RECORDINGS[:1], ids=lambda recording: recording.stream)
async def test_a_back_test_of_a_stored_recording_tells_the_alarms_that_were_told_live(
    live, shared_data, tmp_path, recording
):
    path, recording = tmp_path / "ships.txt", replace(recording, stream=f"{recording.stream}_kept")
    whole = gzip.decompress(recording.path(shared_data, tmp_path).read_bytes())
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:LINES]))
    transport = {"kind": "file", "path": str(path)}
    live.add_stream(recording.stream, transport, recording.decoder, enabled=False, stored=True)
    async with live.monitor("ann", "json") as monitor:
        flickering = recording.plan(corners(recording.box), where=FLICKERING)
        ranges = [flickering, recording.plan(corners(recording.other)), recording.plan(WORLD)]
        plans = {await monitor.register(f"range {number}", plan): plan for number, plan in enumerate(ranges)}
        inside, other, world = plans
        for name, plan in rules(recording, inside, other).items():
            plans[await monitor.register(name, plan)] = plan
        await monitor.running(*plans)
        monitor.kept = {number: [] for number in plans}
        begin_us = now_us()
        live.enable_stream(recording.stream)
        finished = lambda: live.health(recording.stream)["state"] == "finished" and live.log.backlog() == 0  # noqa: E731
        await monitor.until(finished, lambda: f"{live.health(recording.stream)}, backlog {live.log.backlog()}")
        end_us = now_us() + REST_S * US
        await monitor.until(lambda: now_us() > end_us + 2 * US, lambda: "the end of the span")
        asked = BacktestRequest(plans, (begin_us, end_us), {recording.stream: None})
        elements = StoredElements(History(live.home / "history", EARTH), asked)
        found = {number: [] for number in plans}
        for played in Playing(asked).play(elements):
            for row in played.rows.to_pylist():
                found[row["query"]].append((row["key"], SIGNS[row["sign"]], row["time_us"]))
        merged = merged_live(elements, monitor.kept[world])
        for number, plan in plans.items():
            told = [(row["key"], row["sign"], row["time_us"]) for row in monitor.kept[number]]
            told, back = (
                [row for row in rows if row[0] not in merged and row[1] in "+-" and row[2] < end_us - SLACK_S * US]
                for rows in (told, found[number])
            )
            assert len(told) > 15, plan
            assert differences(told, back) == ([], []), (plan, len(merged))
        live.remove_stream(recording.stream)
        await monitor.until(lambda: not any(monitor.answers.values()), "the stream's objects leave every answer")
        for query in plans:
            await monitor.request("query.cancel", query=query)


def merged_live(elements, told):
    """Return the objects of which a micro-batch had two reports, so that the live answer saw only the newer one."""
    columns = [(table["key"].to_pylist(), table["time_us"].to_pylist()) for table in elements]
    stored = {report for keys, times in columns for report in zip(keys, times, strict=True)}
    return {key for key, _ in stored - {(row["key"], row["time_us"]) for row in told}}


def differences(told, back):
    """Return what was told live alone, and what the back-test tells alone."""
    return sorted((Counter(told) - Counter(back)).elements()), sorted((Counter(back) - Counter(told)).elements())


def now_us():
    return time.time_ns() // 1_000

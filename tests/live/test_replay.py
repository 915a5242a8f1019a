"""A replay tells what was told live: the tuples of saved queries and of the view, through the whole of Lookout."""

import asyncio
import json
import time
import urllib.request
from collections import defaultdict
from urllib.parse import urlencode

import pytest

from bench.live import PATIENCE_S
from streaming.results import SIGNS, json_rows, read_frame
from tests.live.monitor import Monitor

pytestmark = pytest.mark.spark

STREAM, TTL_S, PLAYED_S = "replayed_buses", 4.0, 12.0
BUSES = {"kind": "simulator", "fleet": "buses", "count": 120, "seed": 3, "step_s": 1, "pace": 8}
DECODER = {"kind": "geojson", "key": "id", "time": "time"}
TOWN = {"lo": [24.90, 60.15], "hi": [24.97, 60.20]}
QUERIES = {
    "in a part of the town": {"stream": STREAM, "compare": TOWN},
    "fast ones": {"stream": STREAM, "compare": TOWN, "where": "speed_mps > 8"},
    "in a circle": {"stream": STREAM, "area": {"circle": {"center": [24.94, 60.17], "radius_m": 900}}},
    "for two seconds": {"stream": STREAM, "kind": "rule", "for_s": 2},
}
US = 1_000_000


class Recorder(Monitor):
    """Also keeps all tuples that were told, by query."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.tuples = defaultdict(list)

    def _take(self, frame):
        message = json.loads(frame) if isinstance(frame, str) else read_frame(frame)[0]
        if message["type"] in ("answer.snapshot", "answer.change"):
            rows = message["rows"] if isinstance(frame, str) else json_rows(read_frame(frame)[1])[0]
            self.tuples[message["query"]] += [(row["sign"], row["key"], row["time_us"]) for row in rows]
        super()._take(frame)


def pages(live, token, path, from_us, to_us, **given):
    """Return the rows of all pages of a part of the replay."""
    tables = []
    while from_us < to_us:
        address = f"{live.base_url}/replay/{path}?{urlencode(given | {'from_us': from_us, 'to_us': to_us})}"
        asked = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            head, rows = read_frame(answer.read())
        assert from_us // US * US <= head["until_us"] <= -(-to_us // US) * US
        tables.append((head, rows))
        from_us = head["until_us"]
    return tables


def by_object(tuples):
    """Return what was told of each object, in its order."""
    told = defaultdict(list)
    for sign, key, time_us in tuples:
        told[key].append((sign, time_us))
    return dict(told)


@pytest.mark.long
async def test_a_replay_tells_what_was_told_live_of_answers_and_of_the_view(live):
    live.add_stream(STREAM, BUSES, DECODER, enabled=False, stored=True, ttl_s=TTL_S)
    token = live.token("ann")
    async with Recorder(live.socket_url, token) as monitor:
        numbers = {}
        for name, plan in QUERIES.items():
            whole = plan | ({"when": {"query": numbers["in a circle"]}} if plan.get("kind") == "rule" else {})
            numbers[name] = await monitor.register(name, whole)
        await monitor.running(*numbers.values())
        view = (await monitor.view([STREAM], TOWN))[STREAM]
        await monitor.until(lambda: view in monitor.answers, "the view")
        began_us = time.time_ns() // 1000
        live.enable_stream(STREAM)
        answer = numbers["in a part of the town"]
        await monitor.until(lambda: monitor.answers[answer], "a bus")
        await asyncio.sleep(PLAYED_S)  # buses need the time to drive in and out
        live.enable_stream(STREAM, False)
        await monitor.until(
            lambda: not any(monitor.answers[number] for number in [*numbers.values(), view]),
            lambda: "the end of all answers, as no bus is heard any more",
        )
        assert monitor.faults == []
        ended_us = time.time_ns() // 1000 + US

        # Answers.
        given = {"queries": ",".join(map(str, numbers.values())), "end_us": ended_us, "session": "test"}
        told = defaultdict(list)
        for head, rows in await asyncio.to_thread(pages, live, token, "answers", began_us, ended_us, **given):
            assert (head["refused"], sorted(head["queries"])) == ({}, sorted(numbers.values()))
            columns = (rows[name].to_pylist() for name in ("query", "sign", "key", "time_us"))
            for query, sign, key, time_us in zip(*columns, strict=True):
                told[query].append((SIGNS[sign], key, time_us))
        for name, number in numbers.items():
            live_told, replayed = by_object(monitor.tuples[number]), by_object(told[number])
            assert sum(map(len, live_told.values())) > 10, name
            unlike = {key for key in {*live_told, *replayed} if live_told.get(key) != replayed.get(key)}
            assert not unlike, (name, {key: (live_told.get(key), replayed.get(key)) for key in list(unlike)[:3]})

        # The view. A client lets objects expire by itself, so no page tells that.
        bbox = ",".join(map(str, [*TOWN["lo"], *TOWN["hi"]]))
        replayed = []
        for _, rows in await asyncio.to_thread(pages, live, token, f"elements/{STREAM}", began_us, ended_us, bbox=bbox):
            columns = (rows[name].to_pylist() for name in ("sign", "key", "time_us"))
            replayed += [(SIGNS[sign], key, time_us) for sign, key, time_us in zip(*columns, strict=True)]
        last = {key: times[-1] for key, times in by_object(monitor.tuples[view]).items()}
        expired = [(sign, key, time_us) for key, (sign, time_us) in last.items() if sign == "-"]
        known = by_object(replayed)
        silent = {one for one in expired if known[one[1]][-1] != ("-", one[2])}
        seen = [one for one in monitor.tuples[view] if one not in silent]
        assert len(seen) > 100 and len(silent) > 5
        assert by_object(seen) == known
        total = sum(len(rows) for rows in told.values())
        print(f"\n{total} tuples of {len(numbers)} queries, {len(replayed)} of the view: as live")
        for number in reversed(numbers.values()):
            await monitor.request("query.cancel", query=number)
    live.remove_stream(STREAM)

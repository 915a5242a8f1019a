"""What an answer must be: brute force over the newest element of each object."""

from functools import cache
from typing import Any

import orjson
import pyarrow as pa

from streaming.decoders import make_decoder
from streaming.elements import bounds_of
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.oracle import satisfies
from tests.servers.moving_oracle import MovingWorld, check

NOW_US = 1_795_000_000_000_000


def decoded(decoder: dict, stream: str, feed: bytes) -> pa.Table:
    """Return the elements of a whole feed, in the order of arrival."""
    reader = make_decoder(decoder, stream)
    parts = [reader.feed(feed, NOW_US), reader.finish(NOW_US)]
    return pa.concat_tables([part.elements for part in parts])


def newest(elements: pa.Table) -> dict[str, dict[str, Any]]:
    """Return the newest version of each object by key; of equal versions the last to arrive."""
    keys, versions = elements["key"].to_pylist(), elements["version"].to_pylist()
    rows: dict[str, int] = {}
    for row, key in enumerate(keys):
        if key not in rows or versions[row] >= versions[rows[key]]:
            rows[key] = row
    chosen = elements.take(list(rows.values()))
    columns = zip(
        chosen["key"].to_pylist(),
        chosen["time_us"].to_pylist(),
        bounds_of(chosen["bounds"]).tolist(),
        chosen["properties"].to_pylist(),
        strict=True,
    )
    return {key: {"time_us": time, "bounds": box, "properties": text} for key, time, box, text in columns}


def answer(objects: dict[str, dict[str, Any]], document: dict) -> dict[str, dict[str, Any]]:
    """Return the rows that satisfy a plan, as a websocket client keeps them."""
    plan = parse_plan(document)
    return {
        key: {
            "time_us": row["time_us"],
            "bounds": [bound if abs(bound) < float("inf") else None for bound in row["bounds"]],
            "properties": orjson.loads(row["properties"] or "{}"),
        }
        for key, row in objects.items()
        if satisfies(plan, plan.stream, row["bounds"], row["properties"])
    }


def differences(held: dict[str, dict] | None, expected: dict[str, dict]) -> list[str]:
    """Return what is wrong with an answer: keys too many, keys missing, rows that differ."""
    if held is None:
        return ["no answer"]
    wrong = [f"{key} too many" for key in held.keys() - expected.keys()]
    wrong += [f"{key} missing" for key in expected.keys() - held.keys()]
    return wrong + [f"{key}: {held[key]} is not {row}" for key, row in expected.items() if held.get(key, row) != row]


class AtRest(MovingWorld):
    """The oracle over a stream's objects that move no more, so that what brute force finds is found once."""

    def __init__(self, stream: str, objects: dict[str, dict]) -> None:
        super().__init__({}, EARTH)
        for key, row in objects.items():
            self.newest[stream, key] = (0, row["bounds"], row["properties"], 0)

    range, distances, groups = map(cache, (MovingWorld.range, MovingWorld.distances, MovingWorld.groups))


def moving_differences(monitor, plans: dict[int, dict], world: AtRest) -> dict[int, str]:
    """Return what is wrong with answers of queries that move, ask for neighbours or aggregate, by query."""
    held, found = Held(monitor), {}
    for query, plan in plans.items():
        try:
            check(parse_plan(plan), world, held, query)
        except (AssertionError, KeyError) as error:
            found[query] = f"{plan}: {error!r:.300}"
    return found


class Held:
    """What a websocket client holds, as the oracle's `check` looks at it."""

    def __init__(self, monitor):
        infinite = [-float("inf")] * EARTH.n + [float("inf")] * EARTH.n
        self.answers, self.distances, self.ranks = {}, {}, {}
        for query, answer in monitor.answers.items():
            boxes = {
                key: [
                    value if value is not None else other for value, other in zip(row["bounds"], infinite, strict=True)
                ]
                for key, row in answer.items()
            }
            self.answers[query] = {key: (boxes[key], row["properties"]) for key, row in answer.items()}
            self.distances[query] = {key: row.get("distance") for key, row in answer.items()}
            self.ranks[query] = {key: row.get("rank") for key, row in answer.items()}

"""The figures of the last hour, in a bounded list in Redis, to which the worker adds an entry every five seconds.

An entry has the counts of each space, 400 bytes, and of the `MOST_STREAMS` busiest streams, some 40 bytes
each. So an hour of the demonstration takes 0.5 MB, and 3 MB if there are 50 streams.
"""

from typing import Any

import orjson
import redis

from streaming.keys import FIGURES_KEY

EVERY_S = 5.0
KEPT = 720
MOST_STREAMS = 50
COUNTS = ("elements", "merged", "stale", "lost", "malformed")


def entry(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of figures. Rates are made of two entries, where they are shown."""
    most = sorted(figures["streams"].items(), key=lambda item: -(item[1]["elements"] or 0))[:MOST_STREAMS]
    return {
        "at_us": figures["at_us"],
        "down": sorted(figures["reasons"]),
        "redis": figures["redis"].get("share"),
        "disk": min(figures["disk"].values(), default=None),
        "spaces": {name: _space(space) for name, space in figures["spaces"].items()},
        "streams": {name: [told["space"], *(told[count] for count in COUNTS)] for name, told in most},
    }


def _space(space: dict[str, Any]) -> dict[str, Any]:
    tasks = list(space["tasks"].values())
    stages = {stage for task in tasks for stage in task["seconds"]}
    told = {name: space[name] for name in ("waiting_blocks", "oldest_waiting_s", "state_bytes")}
    return told | {
        "elements": sum(task["elements"] for task in tasks),
        "batches": max((task["batches"] for task in tasks), default=0),
        "tasks": len(tasks),
        "seconds": {stage: round(sum(task["seconds"][stage] for task in tasks), 3) for stage in sorted(stages)},
        "longest_s": max((task["longest_s"] or 0.0 for task in tasks), default=None),
        "lag_s": max((task["lag_s"] for task in tasks if task["lag_s"] is not None), default=None),
        "written_bytes": sum(task["written_bytes"] for task in tasks),
        "clients": space["clients"],
    }


def note(connection: redis.Redis, figures: dict[str, Any]) -> None:
    """Add figures to the past; a full Redis refuses them, and the past has a gap."""
    with connection.pipeline() as pipeline:
        pipeline.rpush(FIGURES_KEY, orjson.dumps(entry(figures)))
        pipeline.ltrim(FIGURES_KEY, -KEPT, -1)
        pipeline.execute()


def past(connection: redis.Redis, since_us: int = 0) -> list[dict[str, Any]]:
    """Return the entries that are later than a time, the oldest first."""
    newest = connection.lrange(FIGURES_KEY, -3, -1) if since_us else []
    entries = [orjson.loads(text) for text in newest]
    if not entries or entries[0]["at_us"] > since_us:
        entries = [orjson.loads(text) for text in connection.lrange(FIGURES_KEY, 0, -1)]
    return [told for told in entries if told["at_us"] > since_us]

"""The figures of all programs, as they report them in Redis: one document for the metrics, the page and its past hour.

Engines, gateway and hubs count; this module reads a bounded number of keys, whatever the number of queries is.
"""

import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import orjson
import redis
from django.conf import settings
from django.utils.translation import gettext

from streaming.keys import HEALTH_KEY, WEBS_KEY, LogNames, figures_key
from streaming.logs import Log
from streaming.published import published_spaces
from streaming.redis_client import read_set
from streaming.redis_memory import share_of
from webapp.bus.liveness import space_of
from webapp.bus.redis import NOT_NOW, client
from webapp.hub.reports import lives
from webapp.operations.health import Health

HEALTH = Health()
# How many queries of a space are shown: the costliest, then those with the most result tuples.
TOP_QUERIES = 20
US = 1_000_000


def collected() -> dict[str, Any]:
    """Return what all programs report now.

    Returns
    -------
    dict
        ``at_us``, the wall-clock time; ``reasons``, why parts are down, by part; ``disk``, the free bytes by folder;
        and if Redis answers also ``redis``, ``spaces`` and ``streams``.
    """
    found: dict[str, Any] = {
        "at_us": time.time_ns() // 1000,
        "reasons": HEALTH.reasons(),
        "disk": _disk(),
        "programs": ["database"],
    }
    found |= {"redis": {}, "spaces": {}, "streams": {}}
    try:
        found |= _of_redis(client(), found["at_us"])
    except NOT_NOW:
        found["reasons"] = {"redis": gettext("does not answer")} | found["reasons"]
    engines = {f"engine-{name}" if name != "earth" else "engine" for name in found["spaces"]}
    others = {"database", "redis", "disk", "gateway", "worker", "beat"}
    found["programs"] = sorted({*others, *engines, *found["reasons"]})
    return found


def _of_redis(connection: redis.Redis, now_us: int) -> dict[str, Any]:
    spaces = list(published_spaces(connection))
    webs = sorted(web.decode() for web in read_set(connection, WEBS_KEY))
    with connection.pipeline(transaction=False) as pipeline:
        pipeline.info("memory")
        pipeline.hgetall(HEALTH_KEY)
        for name in spaces:
            pipeline.hgetall(LogNames(name).engine)
            pipeline.hgetall(LogNames(name).gateway)
            pipeline.hgetall(LogNames(name).sent)
        for web in webs:
            pipeline.get(figures_key(web))
        memory, health, *told = pipeline.execute()
    reports, hubs = told[: 3 * len(spaces)], told[3 * len(spaces) :]
    clients = [(space_of(web), orjson.loads(text)) for web, text in zip(webs, hubs, strict=True) if text]
    found = {}
    for place, name in enumerate(spaces):
        engine, gateway, sent = reports[3 * place : 3 * place + 3]
        found[name] = _engine(engine, now_us) | _waiting(
            Log(connection, name, settings.PARTITIONS, url=settings.LOG_URL), now_us
        )
        found[name]["gateway_silent_s"] = _silent_s(gateway, now_us)
        found[name]["clients"] = _clients([figures for space, figures in clients if space == name], sent)
    streams = {name.decode(): orjson.loads(document) for name, document in health.items()}
    used = {"used_bytes": memory["used_memory"], "max_bytes": memory["maxmemory"], "share": share_of(memory)}
    return {"redis": used, "spaces": found, "streams": {name: _stream(s) for name, s in sorted(streams.items())}}


def _engine(report: dict[bytes, bytes], now_us: int) -> dict[str, Any]:
    """Return what the engine of a space reports."""
    told = {name.decode(): value for name, value in report.items()}
    by_number = {
        kind: {int(name.partition(":")[2]): orjson.loads(text) for name, text in told.items() if name.startswith(kind)}
        for kind in ("task:", "load:")
    }
    region_map = orjson.loads(told["map"]) if "map" in told else {"number": None, "places": []}
    tasks = dict(sorted(by_number["task:"].items()))
    regions = [
        {"region": region, "task": _task(region_map, region, len(tasks)), "elements": n, "cpu_s": cpu_s, "objects": o}
        for region, (number, n, cpu_s, o, *_) in sorted(by_number["load:"].items())
        if number == region_map["number"]
    ]
    return {
        "silent_s": _silent_s(report, now_us),
        "standby": lives(report, b"standby_us", now_us),
        "problem": told.get("refused", b"").decode() or told.get("broken", b"").decode(),
        "state_bytes": int(told.get("state:bytes", 0)),
        "tasks": tasks,
        "map": region_map["number"],
        "regions": regions,
        "queries": _queries(tasks.values()),
    }


def _task(region_map: Mapping[str, Any], region: int, tasks: int) -> int:
    """Return in which task a region runs."""
    places = region_map["places"]
    return (places[region] if region < len(places) else region) % max(1, tasks)


def _queries(tasks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Add up what the tasks report about queries; return the costliest ones."""
    seconds: Counter[int] = Counter()
    tuples: Counter[int] = Counter()
    for figures in tasks:
        for query, cost_s, count in figures["queries"]:
            seconds[query] += cost_s
            tuples[query] += count
    top = sorted(seconds, key=lambda query: (-seconds[query], -tuples[query], query))[:TOP_QUERIES]
    return [{"query": query, "seconds": seconds[query], "tuples": tuples[query]} for query in top]


def _waiting(log: Log, now_us: int) -> dict[str, Any]:
    """Return what waits for an engine; also if the engine is dead."""
    oldest_us = log.oldest_waiting_us()
    return {
        "waiting_blocks": log.backlog(),
        "oldest_waiting_s": 0.0 if oldest_us is None else max(0.0, (now_us - oldest_us) / US),
    }


def _clients(hubs: list[dict[str, Any]], sent: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Add up what the hubs of a space report."""
    return {
        "clients": sum(hub["clients"] for hub in hubs),
        "waiting_bytes": sum(hub["waiting_bytes"] for hub in hubs),
        "lag_s": max((hub["lag_s"] for hub in hubs), default=0.0),
        "frames": int(sent.get(b"frames", 0)),
        "bytes": int(sent.get(b"bytes", 0)),
    }


def _stream(health: Mapping[str, Any]) -> dict[str, Any]:
    names = ("space", "state", "error", "hint", "elements", "merged", "stale", "lost", "bytes", "last_us")
    return {name: health.get(name) for name in names} | {"malformed": sum(health.get("malformed", {}).values())}


def _silent_s(report: Mapping[bytes, bytes], now_us: int) -> float | None:
    at_us = report.get(b"at_us")
    return None if at_us is None else max(0.0, (now_us - int(at_us)) / US)


def _disk() -> dict[str, int]:
    folders = {"state": settings.HOME, "layers": settings.LAYERS_DIR, "history": settings.HISTORY_DIR}
    return {name: shutil.disk_usage(folder).free for name, folder in folders.items() if folder.exists()}

"""Health check of database, Redis, gateway, engines, worker, beat and disks, for monitoring."""

import math
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import redis
from django.conf import settings
from django.db import Error, close_old_connections
from django.utils.translation import gettext

from streaming.keys import BEAT_KEY, WORKER_KEY, LogNames
from streaming.language import thousands
from streaming.logs import regions_of
from streaming.redis_memory import LIVE_SHARE, share_of
from streaming.region_reports import Load
from streaming.spaces import EARTH
from webapp.hub.reports import SILENT_AFTER_US
from webapp.models import Space
from webapp.words.stored_words import retold

# The gateway's clock makes every engine evaluate a batch each second; an engine without one for this long is stuck.
# So is a worker that lets tasks wait for this long.
STUCK_AFTER_S = 20.0
# Feeds fill Redis up to `LIVE_SHARE`, and it may be fuller for a moment.
FULL_AFTER_S = 10.0
# Requests within this time get the same result.
FRESH_S = 1.0
TIMEOUT_S = 3.0
MIB = 1 << 20


@dataclass
class Health:
    """Finds out which parts do not work.

    Parameters
    ----------
    clock : function
        Returns monotonic time in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _found: tuple[float, dict[str, str]] | None = None
    _roomy_s: float | None = None
    _batches: dict[str, tuple[bytes, float]] = field(default_factory=dict)
    _no_clock_s: float = -math.inf

    def reasons(self) -> dict[str, str]:
        """Return what is wrong, a few words by part; empty if all is well. The words contain no secrets."""
        with self._lock:
            if self._found is None or self.clock() - self._found[0] >= FRESH_S:
                self._found = self.clock(), self._look()
            return self._found[1]

    def _look(self) -> dict[str, str]:
        reasons, spaces = {}, [EARTH.name]
        try:
            close_old_connections()
            spaces = sorted({*spaces, *Space.objects.values_list("name", flat=True)})
        except Error:
            reasons["database"] = gettext("does not answer")
        try:
            reasons |= self._of_programs(_client(settings.REDIS_URL), spaces)
        except (redis.RedisError, OSError):
            reasons["redis"] = gettext("does not answer")
        return reasons | _of_disks()

    def _of_programs(self, client: redis.Redis, spaces: list[str]) -> dict[str, str]:
        """Return what is wrong with Redis, and with the programs by their own reports there."""
        with client.pipeline(transaction=False) as pipeline:
            for key in (LogNames(EARTH.name).gateway, WORKER_KEY, BEAT_KEY):
                pipeline.hgetall(key)
            for space in spaces:
                pipeline.hgetall(LogNames(space).engine)
            pipeline.info("memory")
            gateway, worker, beat, *engines, memory = pipeline.execute()
        now_us = time.time_ns() // 1000
        wrong = {
            "redis": self._fullness(share_of(memory)),
            "gateway": _silence(gateway, now_us),
            "worker": _silence(worker, now_us) or _untaken(worker),
            "beat": _silence(beat, now_us),
        }
        for space, report in zip(spaces, engines, strict=True):
            name = "engine" if space == EARTH.name else f"engine-{space}"
            refused = report.get(b"refused", b"").decode()
            wrong[name] = (
                retold(refused) or _silence(report, now_us) or self._standstill(space, report, bool(wrong["gateway"]))
            )
        return {name: words for name, words in wrong.items() if words}

    def _fullness(self, share: float) -> str:
        """Return in words that Redis has been so full for a while that feeds have to wait; otherwise empty."""
        if share <= LIVE_SHARE or self._roomy_s is None:
            self._roomy_s = self.clock()
        if self.clock() - self._roomy_s <= FULL_AFTER_S:
            return ""
        text = gettext("is %(share)s full, so the engines and all feeds wait")
        if share < 1:
            text = gettext("is %(share)s full, so feeds wait")
        return text % {"share": f"{share:.0%}"}

    def _standstill(self, space: str, report: Mapping[bytes, bytes], no_clock: bool) -> str:
        """Return in words that an engine evaluates no batches although the gateway's clock runs; otherwise empty."""
        batch, now_s = report.get(b"batch"), self.clock()
        if batch is None:
            return gettext("has not evaluated a batch yet")
        if no_clock:
            self._no_clock_s = now_s
        if batch != self._batches.get(space, (None, 0.0))[0] or no_clock:
            self._batches[space] = batch, now_s
        # A process that has only just begun to look knows from the regions when they last told something.
        told_s = min(time.time() - _regions_us(report) / 1e6, now_s - self._no_clock_s)
        stands_s = max(now_s - self._batches[space][1], told_s)
        return (
            gettext("has evaluated no batch for %(seconds)s s") % {"seconds": f"{stands_s:.0f}"}
            if stands_s > STUCK_AFTER_S
            else ""
        )


def _regions_us(report: Mapping[bytes, bytes]) -> int:
    """Return when a region last told what it has done, which each does after a batch; now if none has told anything."""
    loads = [told for name, told in regions_of(report).items() if name.startswith("load:")]
    return max((Load(*load).at_us for _, *load in loads), default=0) or time.time_ns() // 1000


def _silence(report: Mapping[bytes, bytes], now_us: int) -> str:
    """Return in words that a program has not reported lately; otherwise empty."""
    at_us = report.get(b"at_us")
    if at_us is None:
        return gettext("has not started yet")
    silent_us = now_us - int(at_us)
    return (
        gettext("has been silent for %(seconds)s s") % {"seconds": f"{silent_us / 1e6:.0f}"}
        if silent_us > SILENT_AFTER_US
        else ""
    )


def _untaken(report: Mapping[bytes, bytes]) -> str:
    """Return in words that the worker has let tasks wait for long; otherwise empty."""
    untaken_s = int(report.get(b"untaken_s", 0))
    return (
        gettext("has taken no task for %(seconds)s s, although tasks wait") % {"seconds": untaken_s}
        if untaken_s > STUCK_AFTER_S
        else ""
    )


def _of_disks() -> dict[str, str]:
    """Return in words that there is too little disk space for state, layers or history; otherwise empty."""
    free = {}
    for folder in (settings.HOME, settings.LAYERS_DIR, settings.HISTORY_DIR):
        if folder.exists():
            free[folder] = shutil.disk_usage(folder).free
    least = min(free.values(), default=settings.MIN_DISK_BYTES)
    if least >= settings.MIN_DISK_BYTES:
        return {}
    return {
        "disk": gettext("has %(left)s MiB left, less than %(least)s MiB")
        % {"left": thousands(least // MIB), "least": thousands(settings.MIN_DISK_BYTES // MIB)}
    }


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_connect_timeout=TIMEOUT_S, socket_timeout=TIMEOUT_S)

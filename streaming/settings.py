"""The settings of the engine and the gateway. Only this module and `webapp.settings` read the environment."""

import importlib.util
import ipaddress
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from streaming.errors import InvalidSpace, LookoutError
from streaming.eventlog.opening import check_url
from streaming.log_format import LOG_FORMATS
from streaming.spaces import EARTH, Space, parse_space

# The keys of `operators.partitioners.PARTITIONERS`, which the web application does not import.
PARTITIONER_NAMES = ("kd", "quadtree", "geohash", "grid")
# The strategies of `operators.padding.Padding`.
PADDING_NAMES = ("dynamic", "static", "fetch")
DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"
# What traces need; they are optional packages.
TRACE_MODULES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


@dataclass(frozen=True)
class EngineSettings:
    """Settings of the gateway and the engine. Each has a default that works.

    Brackets give the environment variable, then the default.

    Parameters
    ----------
    home : Path
        The state folder (``LOOKOUT_HOME``, ``var``); `from_environ` makes paths absolute.
    redis_url : str
        Where the logs are (``LOOKOUT_REDIS_URL``, else ``REDIS_URL``, else what ``manage.py live`` last started in
        `home`, else port 6379 of this machine).
    log_url : str
        Where Kafka is, if the logs are there (``LOOKOUT_LOG_URL``, ``kafka://host:port``; none: the logs are in Redis).
    space : Space
        The space that the engine evaluates (``LOOKOUT_SPACE``: its JSON document, see docs/spaces.md, or ``earth``).
    partitions : int
        Partitions of the ingest log, and home servers (``LOOKOUT_PARTITIONS``, 2). If a state was written with another
        number, the engine divides it anew when it starts.
    regions : int
        Regions that the space is cut into at first (``LOOKOUT_REGIONS``, 2); there are never fewer.
    partitioner : str
        How regions are split: ``kd``, ``quadtree``, ``geohash`` or ``grid``, which is never split
        (``LOOKOUT_PARTITIONER``, ``kd``).
    scaling : bool
        Whether regions are split, moved and merged by their load (``LOOKOUT_SCALING``, true).
    most_objects : int
        A region with more objects is split (``LOOKOUT_MOST_OBJECTS``, 2000000).
    most_elements_per_s : int
        A region that gets more elements a second is split (``LOOKOUT_MOST_ELEMENTS_PER_S``, 200000).
    first_elements : int
        After so many elements, a new state's regions are cut at the places of these elements
        (``LOOKOUT_FIRST_ELEMENTS``, 10000); 0 for never.
    padding : str
        What regions keep in memory of the layers that queries join with: ``dynamic``, ``static`` or ``fetch``
        (``LOOKOUT_PADDING``, ``dynamic``; see docs/architecture.md).
    padding_size : float
        How far regions look beyond their borders if `padding` is ``static`` (``LOOKOUT_PADDING_SIZE``, 10,000), in
        metres in a space with longitude and latitude, elsewhere in the unit of the first dimension.
    state_dir : Path
        Checkpoint and state files (``LOOKOUT_STATE_DIR``, ``engine/<space>`` in `home`).
    state_uri : str
        Where the state files are, if not in `state_dir` (``LOOKOUT_STATE_URI``: a folder of any file system that fsspec
        knows, such as ``s3://bucket/lookout``; none). Each space has a folder in it.
    layers_dir : Path
        The stored layers (``LOOKOUT_LAYERS_DIR``, ``layers`` in `home`); the web application writes them.
    history_dir : Path
        The stored elements of streams (``LOOKOUT_HISTORY_DIR``, ``history`` in `home`).
    master : str
        Spark master (``LOOKOUT_SPARK_MASTER``, ``local[2,4]``).
    driver_host : str
        The address under which the machines of a Spark cluster reach the engine (``LOOKOUT_DRIVER_HOST``,
        ``127.0.0.1``).
    executor_memory : str
        Largest heap of an executor of a cluster (``LOOKOUT_EXECUTOR_MEMORY``, ``1g``), without its Python processes.
    executor_python : str
        The Python of a cluster's machines (``LOOKOUT_EXECUTOR_PYTHON``; the path of this one).
    max_blocks : int
        How many blocks one batch reads at most from one partition (``LOOKOUT_MAX_BLOCKS``, 64).
    driver_memory : str
        Largest heap of the Java machine (``LOOKOUT_DRIVER_MEMORY``, ``1g``).
    batch_ms : int
        The least time from one batch to the next in milliseconds (``LOOKOUT_BATCH_MS``, 50).
    feed_dirs : tuple of Path
        Folders below which feeds may read files and pipes (``LOOKOUT_FEED_DIRS``, with colons between; ``feeds`` in
        `home`).
    feed_hosts : tuple of str
        Hosts that feeds may connect to although they are not public (``LOOKOUT_FEED_HOSTS``: names, addresses and
        networks, with commas between; none).
    standby_after_s : int
        An engine that stands by waits so many seconds before it starts Spark, so that other programs can start first
        (``LOOKOUT_STANDBY_AFTER_S``, 15).
    step_s : int
        If a server needs more than so many seconds for one evaluation of its queries, the engine ends it and finds out
        which query is the reason (``LOOKOUT_STEP_S``, 60; see docs/reliability.md).
    java_home : str
        Where Java is (``JAVA_HOME``); empty to look for it (see `streaming.engine.java`).
    log_format : str
        How logs are written (``LOOKOUT_LOG_FORMAT``): ``text`` or ``json``, one object a line.
    trace_ratio : float
        Which part of all elements is traced, from 0 to 1 (``LOOKOUT_TRACE_RATIO``, 0; see docs/operations.md).
    """

    home: Path = Path("var")
    redis_url: str = DEFAULT_REDIS_URL
    log_url: str = ""
    space: Space = EARTH
    partitions: int = 2
    regions: int = 2
    partitioner: str = "kd"
    scaling: bool = True
    most_objects: int = 2_000_000
    most_elements_per_s: int = 200_000
    first_elements: int = 10_000
    padding: str = "dynamic"
    padding_size: float = 10_000.0
    state_dir: Path = Path("var/engine/earth")
    state_uri: str = ""
    layers_dir: Path = Path("var/layers")
    history_dir: Path = Path("var/history")
    master: str = "local[2,4]"
    driver_host: str = "127.0.0.1"
    executor_memory: str = "1g"
    executor_python: str = ""
    max_blocks: int = 64
    driver_memory: str = "1g"
    batch_ms: int = 50
    feed_dirs: tuple[Path, ...] = (Path("var/feeds"),)
    feed_hosts: tuple[str, ...] = ()
    standby_after_s: int = 15
    step_s: int = 60
    java_home: str = ""
    log_format: str = "text"
    trace_ratio: float = 0.0

    @property
    def on_cluster(self) -> bool:
        """Whether Spark's tasks run in other processes than the driver's, perhaps on other machines."""
        return not self.master.startswith("local[")

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "EngineSettings":
        """Return the settings that an environment describes; an empty value counts as none.

        Parameters
        ----------
        environ : mapping of str to str, optional
            The environment of the process if it is left out.

        Raises
        ------
        LookoutError
            If a number is not a positive whole number, a size is not a number from 0 up, or the space, a network of
            ``LOOKOUT_FEED_HOSTS`` or ``LOOKOUT_LOG_URL`` is not valid.

        Examples
        --------
        >>> EngineSettings.from_environ({"LOOKOUT_REGIONS": "9"}).regions
        9
        """
        given = {name: value for name, value in (os.environ if environ is None else environ).items() if value}
        home, space = home_of(given), _space(given.get("LOOKOUT_SPACE", EARTH.name))
        return cls(
            home=home,
            redis_url=redis_url(given, home),
            log_url=log_url(given),
            space=space,
            partitions=_count(given, "LOOKOUT_PARTITIONS", cls.partitions),
            regions=_count(given, "LOOKOUT_REGIONS", cls.regions),
            partitioner=_choice(given, "LOOKOUT_PARTITIONER", PARTITIONER_NAMES, cls.partitioner),
            scaling=_choice(given, "LOOKOUT_SCALING", ("true", "false"), "true") == "true",
            most_objects=_count(given, "LOOKOUT_MOST_OBJECTS", cls.most_objects),
            most_elements_per_s=_count(given, "LOOKOUT_MOST_ELEMENTS_PER_S", cls.most_elements_per_s),
            first_elements=_count(given, "LOOKOUT_FIRST_ELEMENTS", cls.first_elements, least=0),
            padding=_choice(given, "LOOKOUT_PADDING", PADDING_NAMES, cls.padding),
            padding_size=_size(given, "LOOKOUT_PADDING_SIZE", cls.padding_size),
            state_dir=Path(given.get("LOOKOUT_STATE_DIR", home / "engine" / space.name)).expanduser().absolute(),
            state_uri=given.get("LOOKOUT_STATE_URI", cls.state_uri),
            layers_dir=layers_dir(given, home),
            history_dir=history_dir(given, home),
            master=given.get("LOOKOUT_SPARK_MASTER", cls.master),
            driver_host=given.get("LOOKOUT_DRIVER_HOST", cls.driver_host),
            executor_memory=given.get("LOOKOUT_EXECUTOR_MEMORY", cls.executor_memory),
            executor_python=given.get("LOOKOUT_EXECUTOR_PYTHON", cls.executor_python),
            max_blocks=_count(given, "LOOKOUT_MAX_BLOCKS", cls.max_blocks),
            driver_memory=given.get("LOOKOUT_DRIVER_MEMORY", cls.driver_memory),
            batch_ms=_count(given, "LOOKOUT_BATCH_MS", cls.batch_ms),
            feed_dirs=feed_dirs(given, home),
            feed_hosts=feed_hosts(given),
            standby_after_s=_count(given, "LOOKOUT_STANDBY_AFTER_S", cls.standby_after_s, least=0),
            step_s=_count(given, "LOOKOUT_STEP_S", cls.step_s),
            java_home=given.get("JAVA_HOME", cls.java_home),
            log_format=log_format(given),
            trace_ratio=trace_ratio(given),
        )


def log_format(environ: Mapping[str, str] | None = None) -> str:
    """Return the format of logs that an environment, by default that of the process, names.

    Raises
    ------
    LookoutError
        If it is none of `LOG_FORMATS`.
    """
    given = os.environ if environ is None else environ
    chosen = {"LOOKOUT_LOG_FORMAT": given.get("LOOKOUT_LOG_FORMAT") or LOG_FORMATS[0]}
    return _choice(chosen, "LOOKOUT_LOG_FORMAT", LOG_FORMATS, LOG_FORMATS[0])


def trace_ratio(environ: Mapping[str, str]) -> float:
    """Return which part of all elements is traced, as an environment says.

    Raises
    ------
    LookoutError
        If it is not a number from 0 to 1, or if it is above 0 and OpenTelemetry is not installed.
    """
    ratio = _size(environ, "LOOKOUT_TRACE_RATIO", 0.0, most=1.0)
    if ratio:
        try:
            missing = [name for name in TRACE_MODULES if importlib.util.find_spec(name) is None]
        except ModuleNotFoundError as error:
            missing = [str(error.name)]
        if missing:
            words = "LOOKOUT_TRACE_RATIO needs the packages of OpenTelemetry: pip install lookout[traces]"
            raise LookoutError(f"{words}; there is no {', '.join(missing)}")
    return ratio


def home_of(environ: Mapping[str, str] | None = None) -> Path:
    """Return the state folder that an environment, by default that of the process, names; ``var`` if it names none."""
    given = os.environ if environ is None else environ
    return Path(given.get("LOOKOUT_HOME") or "var").expanduser().absolute()


def feed_dirs(environ: Mapping[str, str] | None, home: Path) -> tuple[Path, ...]:
    """Return the folders below which feeds may read: those of the environment, else ``feeds`` in the state folder.

    Relative folders start at the state folder, as the paths of feeds do.
    """
    given = os.environ if environ is None else environ
    folders = given.get("LOOKOUT_FEED_DIRS") or "feeds"
    return tuple(home / Path(folder).expanduser() for folder in folders.split(os.pathsep) if folder)


def feed_hosts(environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the hosts that feeds may connect to although they are not public; see `hosts`."""
    return hosts("LOOKOUT_FEED_HOSTS", environ)


def hosts(setting: str, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the names, addresses and networks that a setting lists with commas between, in lower case.

    Raises
    ------
    LookoutError
        If one that has a slash is not a network.
    """
    given = os.environ if environ is None else environ
    listed = tuple(filter(None, (host.strip().lower() for host in given.get(setting, "").split(","))))
    for host in listed:
        if "/" in host:
            _check_network(setting, host)
    return listed


def _check_network(setting: str, text: str) -> None:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise LookoutError(f"{setting} must be names, addresses and networks; got {text!r}") from None


def layers_dir(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of the stored layers: that of the environment, else ``layers`` in the state folder."""
    return Path(environ.get("LOOKOUT_LAYERS_DIR") or home / "layers").expanduser().absolute()


def history_dir(environ: Mapping[str, str], home: Path) -> Path:
    """Return the folder of the stored elements: that of the environment, else ``history`` in the state folder."""
    return Path(environ.get("LOOKOUT_HISTORY_DIR") or home / "history").expanduser().absolute()


def redis_url(environ: Mapping[str, str], home: Path) -> str:
    """Return the URL of Redis: of the environment, else of the embedded Redis of `home`, else `DEFAULT_REDIS_URL`."""
    embedded = embedded_redis_file(home)
    kept = embedded.read_text().strip() if embedded.is_file() else DEFAULT_REDIS_URL
    return declared_redis_url(environ) or kept


def log_url(environ: Mapping[str, str]) -> str:
    """Return the URL of the Kafka that has the logs; empty if an environment names none.

    Raises
    ------
    LookoutError
        If it is not one.
    """
    return check_url(environ.get("LOOKOUT_LOG_URL") or "")


def declared_redis_url(environ: Mapping[str, str] | None = None) -> str:
    """Return the URL of Redis that an environment, by default that of the process, names; empty if it names none."""
    given = os.environ if environ is None else environ
    return given.get("LOOKOUT_REDIS_URL") or given.get("REDIS_URL") or ""


def embedded_redis_file(home: Path) -> Path:
    """Return the file that holds the URL of the Redis that ``manage.py live`` starts for a state folder."""
    return home / "redis" / "url"


def _space(text: str) -> Space:
    """Return the space of a text: ``earth``, or the JSON document of a space."""
    try:
        return EARTH if text == EARTH.name else parse_space(text)
    except InvalidSpace as error:
        raise LookoutError(f"LOOKOUT_SPACE must be {EARTH.name} or the JSON document of a space: {error}") from None


def _choice(given: Mapping[str, str], name: str, choices: Collection[str], default: str) -> str:
    """Return one of some words from the environment, or the default."""
    text = given.get(name, default)
    if text not in choices:
        raise LookoutError(f"{name} must be one of {', '.join(choices)}; got {text!r}")
    return text


def _count(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    """Return a whole number, `least` or more, from the environment, or the default."""
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        rule = "a positive whole number" if least else "a whole number from 0 up"
        raise LookoutError(f"{name} must be {rule}; got {text!r}")
    return int(text)


def _size(given: Mapping[str, str], name: str, default: float, most: float = math.inf) -> float:
    """Return a finite number from 0 to `most` from the environment, or the default."""
    text = given.get(name) or str(default)
    try:
        size = float(text)
    except ValueError:
        size = math.nan
    if not 0 <= size <= most or size == math.inf:
        raise LookoutError(
            f"{name} must be a number from 0 {'up' if most == math.inf else f'to {most:g}'}; got {text!r}"
        )
    return size

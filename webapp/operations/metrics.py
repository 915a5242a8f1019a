"""The metrics for Prometheus: a table of names, words and where each value stands among the figures.

References
----------
https://prometheus.io/docs/practices/naming/ and https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

Figures = dict[str, Any]
Row = tuple[tuple[Any, ...], float | None]
Rows = Callable[[Figures], Iterable[Row]]
Value = Callable[[Figures], Any]
COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily


@dataclass(frozen=True)
class Metric:
    """A metric, and how its values are read from the figures.

    Parameters
    ----------
    name : str
        Counters end in ``_total``.
    help : str
    labels : tuple of str
    rows : function of the figures
        Yields the values of the labels with the value; None for a value that is not known.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    rows: Rows

    def family(self, figures: Figures) -> CounterMetricFamily | GaugeMetricFamily:
        """Return the metric with its values."""
        kind = COUNTER if self.name.endswith("_total") else GAUGE
        family = kind(self.name, self.help, labels=self.labels)
        for labels, value in self.rows(figures):
            if value is not None:
                family.add_metric([str(label) for label in labels], value)
        return family


def _of_spaces(value: Value) -> Rows:
    return lambda figures: (((name,), value(space)) for name, space in figures["spaces"].items())


def _of_tasks(value: Value) -> Rows:
    def rows(figures: Figures) -> Iterator[Row]:
        for name, space in figures["spaces"].items():
            yield from (((name, task), value(told)) for task, told in space["tasks"].items())

    return rows


def _of_items(items: str, label: tuple[str, ...], value: str) -> Rows:
    """Read a value of each region or of each query of a space."""

    def rows(figures: Figures) -> Iterator[Row]:
        for name, space in figures["spaces"].items():
            yield from (((name, *(item[part] for part in label)), item[value]) for item in space[items])

    return rows


def _of_streams(value: Value) -> Rows:
    return lambda figures: (((name, told["space"]), value(told)) for name, told in figures["streams"].items())


def _stages(figures: Figures) -> Iterator[Row]:
    for name, space in figures["spaces"].items():
        for task, told in space["tasks"].items():
            yield from (((name, task, stage), seconds) for stage, seconds in told["seconds"].items())


def _ages(figures: Figures) -> Iterator[Row]:
    for name, told in figures["streams"].items():
        if told["last_us"] is not None:
            yield (name, told["space"]), max(0.0, (figures["at_us"] - told["last_us"]) / 1e6)


def _up(figures: Figures) -> Iterator[Row]:
    return (((name,), name not in figures["reasons"]) for name in figures["programs"])


def _largest(name: str) -> Value:
    """Read the largest value that a task of a space reports."""
    return lambda space: max((t[name] for t in space["tasks"].values() if t[name] is not None), default=None)


SPACE, TASK, STREAM = ("space",), ("space", "task"), ("stream", "space")
REGION, QUERY = ("space", "region", "task"), ("space", "query")
METRICS = (
    Metric("lookout_up", "1 if a part of Lookout works, 0 if /healthz says that it is down.", ("part",), _up),
    Metric(
        "lookout_engine_elements_total",
        "Elements that the engine has read.",
        TASK,
        _of_tasks(lambda task: task["elements"]),
    ),
    Metric(
        "lookout_engine_late_reports_total",
        "Reports that came too late for a join over event time, encounters or tracks, each once for each such query.",
        TASK,
        _of_tasks(lambda task: task["late"]),
    ),
    Metric(
        "lookout_engine_doubted_reports_total",
        "Reports that were not believed by a query about tracks, each once for each such query.",
        TASK,
        _of_tasks(lambda task: task.get("doubted", 0)),
    ),
    Metric(
        "lookout_engine_unjoined_reports",
        "Reports of windows that have ended which the next batches join.",
        TASK,
        _of_tasks(lambda task: task["unjoined"]),
    ),
    Metric(
        "lookout_engine_batches_total",
        "Micro-batches that a task of the engine has run.",
        TASK,
        _of_tasks(lambda task: task["batches"]),
    ),
    Metric(
        "lookout_engine_stage_seconds_total",
        "Time that the stages of all batches took, in a task.",
        (*TASK, "stage"),
        _stages,
    ),
    Metric(
        "lookout_engine_longest_batch_seconds",
        "Longest batch of the last 15 to 30 seconds, in any task.",
        SPACE,
        _of_spaces(_largest("longest_s")),
    ),
    Metric(
        "lookout_engine_lag_seconds",
        "Longest time of the last 15 to 30 seconds from an element's arrival to the result of its batch.",
        SPACE,
        _of_spaces(_largest("lag_s")),
    ),
    Metric(
        "lookout_engine_waiting_blocks",
        "Blocks of elements that the engine has not read, in the longest partition.",
        SPACE,
        _of_spaces(lambda space: space["waiting_blocks"]),
    ),
    Metric(
        "lookout_engine_oldest_waiting_seconds",
        "Age of the oldest block that no task has read; 0 if none waits.",
        SPACE,
        _of_spaces(lambda space: space["oldest_waiting_s"]),
    ),
    Metric(
        "lookout_engine_silent_seconds",
        "Time since the engine's last sign of life.",
        SPACE,
        _of_spaces(lambda space: space["silent_s"]),
    ),
    Metric(
        "lookout_engine_standby",
        "1 if a second engine stands by.",
        SPACE,
        _of_spaces(lambda space: space["standby"]),
    ),
    Metric(
        "lookout_engine_state_bytes",
        "Size of the newest durable state.",
        SPACE,
        _of_spaces(lambda space: space["state_bytes"]),
    ),
    Metric(
        "lookout_engine_state_written_bytes_total",
        "State that a task has written.",
        TASK,
        _of_tasks(lambda task: task["written_bytes"]),
    ),
    Metric(
        "lookout_region_elements_total",
        "Elements that came to a region since its map is in force and its interval began.",
        REGION,
        _of_items("regions", ("region", "task"), "elements"),
    ),
    Metric(
        "lookout_region_cpu_seconds_total",
        "Processor time of a region since its map is in force and its interval began.",
        REGION,
        _of_items("regions", ("region", "task"), "cpu_s"),
    ),
    Metric(
        "lookout_region_objects",
        "Objects that a region keeps.",
        REGION,
        _of_items("regions", ("region", "task"), "objects"),
    ),
    Metric(
        "lookout_query_seconds_total",
        "Time of the costliest queries of this interval, as far as it is measured apart; query 0 is all views.",
        QUERY,
        _of_items("queries", ("query",), "seconds"),
    ),
    Metric(
        "lookout_query_tuples_total",
        "Result tuples of the same queries; queries that share an answer count as the first of them.",
        QUERY,
        _of_items("queries", ("query",), "tuples"),
    ),
    Metric(
        "lookout_stream_elements_total",
        "Elements that were decoded.",
        STREAM,
        _of_streams(lambda told: told["elements"]),
    ),
    Metric(
        "lookout_stream_merged_total",
        "Elements that newer ones replaced before they were written.",
        STREAM,
        _of_streams(lambda told: told["merged"]),
    ),
    Metric(
        "lookout_stream_stale_total",
        "Elements that the engine dropped because it knew a newer one.",
        STREAM,
        _of_streams(lambda told: told["stale"]),
    ),
    Metric(
        "lookout_stream_lost_total",
        "Datagrams that came faster than they were read.",
        STREAM,
        _of_streams(lambda told: told["lost"]),
    ),
    Metric(
        "lookout_stream_malformed_total",
        "Pieces of input that gave no element.",
        STREAM,
        _of_streams(lambda told: told["malformed"]),
    ),
    Metric(
        "lookout_stream_received_bytes_total",
        "Bytes that a stream has received.",
        STREAM,
        _of_streams(lambda told: told["bytes"]),
    ),
    Metric("lookout_stream_silent_seconds", "Time since a stream's last element.", STREAM, _ages),
    Metric(
        "lookout_stream_up",
        "1 unless a stream is retrying or has failed.",
        STREAM,
        _of_streams(lambda told: told["state"] not in ("retrying", "failed")),
    ),
    Metric(
        "lookout_gateway_silent_seconds",
        "Time since the gateway's last sign of life for a space.",
        SPACE,
        _of_spaces(lambda space: space["gateway_silent_s"]),
    ),
    Metric(
        "lookout_clients",
        "Connections to the websocket; each is connected to every space.",
        SPACE,
        _of_spaces(lambda space: space["clients"]["clients"]),
    ),
    Metric(
        "lookout_client_lag_seconds",
        "Age of the oldest frame that a client has not taken.",
        SPACE,
        _of_spaces(lambda space: space["clients"]["lag_s"]),
    ),
    Metric(
        "lookout_client_waiting_bytes",
        "Answers that wait for slow clients.",
        SPACE,
        _of_spaces(lambda space: space["clients"]["waiting_bytes"]),
    ),
    Metric(
        "lookout_sent_frames_total",
        "Frames with answers that connections got.",
        SPACE,
        _of_spaces(lambda space: space["clients"]["frames"]),
    ),
    Metric(
        "lookout_sent_bytes_total",
        "Characters or bytes of these frames.",
        SPACE,
        _of_spaces(lambda space: space["clients"]["bytes"]),
    ),
    Metric(
        "lookout_redis_used_bytes",
        "Memory that Redis uses.",
        (),
        lambda figures: [((), figures["redis"].get("used_bytes"))],
    ),
    Metric(
        "lookout_redis_max_bytes",
        "Memory that Redis may use; 0 without a limit.",
        (),
        lambda figures: [((), figures["redis"].get("max_bytes"))],
    ),
    Metric(
        "lookout_disk_free_bytes",
        "Free space of the disk of a folder.",
        ("folder",),
        lambda figures: (((name,), free) for name, free in figures["disk"].items()),
    ),
)


class FiguresCollector:
    """Makes the metrics of one scrape, for a registry of `prometheus_client`.

    Parameters
    ----------
    figures : dict
        As `figures.collected` returns them.
    """

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield every metric."""
        for metric in METRICS:
            yield metric.family(self._figures)


def registry_of(figures: Figures) -> CollectorRegistry:
    """Return a registry with the metrics of one scrape, and nothing about the process that answers it."""
    registry = CollectorRegistry()
    registry.register(FiguresCollector(figures))
    return registry

"""What it costs to run elsewhere: on executors of a cluster, with the logs in Kafka, with the state in S3.

``python -m bench.deployments`` measures each in turn on this machine, and prints a table. Kafka and the server of S3
come from Maven Central.
"""

import argparse
import os
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.kafka_broker import started
from bench.machine import machine
from bench.measure import Row, measure
from bench.ports import free_port
from bench.report import figure_text, table
from bench.s3_server import BUCKET, s3_server
from bench.scenarios import FULL_SPEED, Scenario
from bench.stack import running
from streaming.engine.java import java_home
from streaming.engine.standalone import Cluster, standalone

Settings = Mapping[str, str]
Deploy = Callable[[Path], AbstractContextManager[Settings]]
FAST, STEADY = Scenario("full speed", FULL_SPEED), Scenario("steady", 20_000)


def cluster(folder: Path, count: int) -> AbstractContextManager[Cluster]:
    """Return a cluster with as many workers, each of one core."""
    return standalone(folder, java_home(os.environ.get("JAVA_HOME", ""), folder), free_port(), count)


def settings_on(running: Cluster, partitions: int) -> Settings:
    """Return the settings of an engine with an executor for each of so many home partitions."""
    return {
        "LOOKOUT_SPARK_MASTER": running.url,
        "LOOKOUT_PARTITIONS": str(partitions),
        "LOOKOUT_EXECUTOR_MEMORY": "1g",
    }


def cluster_of(count: int) -> Deploy:
    """Return a cluster with as many executors, each of one core; there are as many home partitions."""

    @contextmanager
    def deployed(folder: Path) -> Iterator[Settings]:
        with cluster(folder, count) as running:
            yield settings_on(running, count)

    return deployed


@contextmanager
def kafka(folder: Path) -> Iterator[Settings]:
    """Run a broker of Kafka for the logs."""
    with started(folder) as broker:
        yield {"LOOKOUT_LOG_URL": broker.url}


@contextmanager
def s3(folder: Path) -> Iterator[Settings]:
    """Run a server of S3 for the state."""
    with s3_server(folder) as told:
        yield {**told, "LOOKOUT_STATE_URI": f"s3://{BUCKET}/{uuid.uuid4().hex}"}


def here(folder: Path) -> AbstractContextManager[Settings]:
    """Return the settings of ``make live``: tasks in one process with the driver, Redis, a local folder."""
    return nullcontext({})


DEPLOYMENTS: dict[str, Deploy] = {
    "this machine, Redis, local state": here,
    "1 executor": cluster_of(1),
    "2 executors": cluster_of(2),
    "4 executors": cluster_of(4),
    "Kafka": kafka,
    "S3": s3,
}


def measured(deploy: Deploy, seconds: float) -> tuple[Row, Row]:
    """Return what a deployment takes at full speed, and how it is at `STEADY`."""
    with (
        TemporaryDirectory(prefix="lookout-deployed-", ignore_cleanup_errors=True) as folder,
        deploy(Path(folder)) as settings,
        running(STEADY.queries, settings=settings) as stack,
    ):
        return measure(stack, FAST, seconds), measure(stack, STEADY, seconds)


def row(name: str, fast: Row, steady: Row, most: float) -> list[str]:
    """Return a row of the table; `most` is what the first deployment takes."""
    ages = (steady.latency[key] for key in ("p50_ms", "p99_ms"))
    taken = fast.work.elements_per_s
    return [name, *map(figure_text, (taken, taken / most, fast.work.batches_per_s, *ages))]


def main() -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.deployments", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--only", action="append", choices=DEPLOYMENTS, help="beside the first; may come several times")
    arguments = parser.parse_args()
    first, *others = DEPLOYMENTS
    chosen = [first, *(name for name in others if name in (arguments.only or others))]
    rows, most = [], 0.0
    for name in chosen:
        fast, steady = measured(DEPLOYMENTS[name], arguments.seconds)
        most = most or fast.work.elements_per_s
        rows.append(row(name, fast, steady, most))
        print(rows[-1], file=sys.stderr, flush=True)
    head = ["deployment", "elements/s at most", "of the first", "batches/s", "p50 ms at 20,000/s", "p99 ms"]
    print(f"{machine()}\n\n{table(head, rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

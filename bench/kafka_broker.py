"""A broker of Kafka in KRaft mode, on loopback, from the jars of Maven Central."""

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka.admin import AdminClient

from bench.live import PATIENCE_S
from bench.maven import with_dependencies
from bench.ports import free_port
from streaming.engine.java import java_home

VERSION = "4.1.1"
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class Broker:
    """A broker that can be killed and started again.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    NotReached
        If its jars are not there and Maven Central is not reached.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.servers = f"127.0.0.1:{self.port}"
        self._java = java_home(os.environ.get("JAVA_HOME", ""), folder) / "bin" / "java"
        self._classes = f"{with_dependencies(self._java, 'org.apache.kafka', 'kafka_2.13', VERSION)}/*"
        self._file = folder / "server.properties"
        self._file.write_text(PROPERTIES.format(port=self.port, controller=free_port(), folder=folder))
        self._run("kafka.tools.StorageTool", "format", "-t", str(uuid.uuid4()), "-c", self._file).wait(PATIENCE_S)

    def _run(self, program, *arguments):
        options = ["-Xmx256m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        with (self.folder / "broker.log").open("ab") as log:
            command = [self._java, *options, "-cp", self._classes, program, *map(str, arguments)]
            return subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def url(self) -> str:
        """What ``LOOKOUT_LOG_URL`` is, for a Lookout that has the broker for itself."""
        return f"kafka://{self.servers}/lookout"

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self._process = self._run("kafka.Kafka", self._file)
        AdminClient({"bootstrap.servers": self.servers, "log_level": 0}).list_topics(timeout=PATIENCE_S)

    def kill(self) -> None:
        """Kill the broker with SIGKILL."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Broker]:
    """Run a broker that keeps its files in a folder.

    Raises
    ------
    NotReached
        As `Broker`.
    """
    broker = Broker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()

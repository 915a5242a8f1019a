"""A cluster of Spark on this machine: ``python -m streaming.engine.standalone`` starts a master and some workers."""

import argparse
import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyspark

from streaming.engine.java import java_home
from streaming.settings import EngineSettings

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
HOST = "127.0.0.1"


class Cluster:
    """A master and some workers, each a process of its own, and each worker with one core and a folder of its own.

    Parameters
    ----------
    folder : Path
        For the files of the workers.
    java : Path
        The JAVA_HOME of the Java to start.
    port : int
        Of the master.

    Attributes
    ----------
    url : str
        The address of the master, such as ``spark://127.0.0.1:7077``.
    workers : dict of int to subprocess.Popen
        By number.
    """

    def __init__(self, folder: Path, java: Path, port: int) -> None:
        self.url, self._folder = f"spark://{HOST}:{port}", folder
        home = Path(pyspark.__file__).parent
        self._program = str(home / "bin" / "spark-class")
        self._environment = os.environ | {"JAVA_HOME": str(java), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST}
        self.master = self._run(MASTER, "--host", HOST, "--port", str(port), "--webui-port", "0")
        self.workers: dict[int, subprocess.Popen] = {}

    def start_worker(self, number: int) -> None:
        """Start a worker, with the folder of an earlier one of the same number."""
        options = ("--host", HOST, "--cores", "1", "--memory", "2g", "--webui-port", "0")
        work = str(self._folder / f"worker-{number}")
        self.workers[number] = self._run(WORKER, *options, "--work-dir", work, self.url)

    def kill_worker(self, number: int) -> None:
        """Kill a worker with SIGKILL; its executors end by themselves."""
        self.workers[number].kill()
        self.workers[number].wait()

    def wait(self) -> None:
        """Wait until the master ends."""
        self.master.wait()

    def end(self) -> None:
        """End everything that was started."""
        running = [self.master, *self.workers.values()]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait()

    def _run(self, *command: str | Path) -> subprocess.Popen:
        return subprocess.Popen([self._program, *command], env=self._environment, start_new_session=True)


@contextlib.contextmanager
def standalone(folder: Path, java: Path, port: int, workers: int) -> Iterator[Cluster]:
    """Run a cluster; see `Cluster`. Yield it, and end it at the end."""
    cluster = Cluster(folder, java, port)
    try:
        for number in range(workers):
            cluster.start_worker(number)
        yield cluster
    finally:
        cluster.end()


def main() -> None:
    """Run until a signal."""
    settings = EngineSettings.from_environ()
    parser = argparse.ArgumentParser(prog="python -m streaming.engine.standalone", description=main.__doc__)
    parser.add_argument("--workers", type=int, default=2, help="each with one core (2)")
    parser.add_argument("--port", type=int, default=7077, help="of the master (7077)")
    arguments = parser.parse_args()
    java = java_home(settings.java_home, settings.home)
    with standalone(settings.home / "standalone", java, arguments.port, arguments.workers) as cluster:
        print(f"LOOKOUT_SPARK_MASTER={cluster.url} make live", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            cluster.wait()


if __name__ == "__main__":
    main()

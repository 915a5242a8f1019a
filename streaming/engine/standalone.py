"""A cluster of Spark on this machine: ``python -m streaming.engine.standalone`` starts a master and some workers."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark

from streaming.engine.java import java_home
from streaming.settings import EngineSettings

MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
HOST = "127.0.0.1"


@contextlib.contextmanager
def standalone(folder: Path, java: Path, port: int, workers: int) -> Iterator[list[subprocess.Popen]]:
    """Run a master and some workers, each with one core and a folder of its own; end them at the end.

    Parameters
    ----------
    folder : Path
        For the files of the workers.
    java : Path
        The JAVA_HOME of the Java to start.
    port : int
        Of the master.
    workers : int

    Yields
    ------
    list of subprocess.Popen
        The master, then the workers. The master's address is ``spark://127.0.0.1:{port}``.
    """
    home = Path(pyspark.__file__).parent
    environment = os.environ | {"JAVA_HOME": str(java), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": HOST}
    base = [str(home / "bin" / "spark-class")]
    commands = [[*base, MASTER, "--host", HOST, "--port", str(port), "--webui-port", "0"]]
    for number in range(workers):
        options = ("--host", HOST, "--cores", "1", "--memory", "2g", "--webui-port", "0")
        commands.append([*base, WORKER, *options, "--work-dir", str(folder / f"worker-{number}"), _url(port)])
    running: list[subprocess.Popen] = []
    try:
        for command in commands:
            running.append(subprocess.Popen(command, env=environment, start_new_session=True))
        yield running
    finally:
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait()


def _url(port):
    return f"spark://{HOST}:{port}"


def main() -> None:
    """Run until a signal."""
    settings = EngineSettings.from_environ()
    parser = argparse.ArgumentParser(prog="python -m streaming.engine.standalone", description=main.__doc__)
    parser.add_argument("--workers", type=int, default=2, help="each with one core (2)")
    parser.add_argument("--port", type=int, default=7077, help="of the master (7077)")
    arguments = parser.parse_args()
    java = java_home(settings.java_home, settings.home)
    with standalone(settings.home / "standalone", java, arguments.port, arguments.workers) as running:
        print(f"LOOKOUT_SPARK_MASTER={_url(arguments.port)} make live", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            running[0].wait()


if __name__ == "__main__":
    sys.exit(main())

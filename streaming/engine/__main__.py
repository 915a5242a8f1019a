"""Run the engine of one space: ``python -m streaming.engine``."""

import importlib
import logging
import sys
import threading

from streaming.engine.class_archive import ClassArchive
from streaming.engine.forkserver import ForkServer
from streaming.engine.java import java_home
from streaming.engine.session import start_session
from streaming.settings import EngineSettings


def main() -> int:
    """Start Spark and evaluate continuous queries until told to stop; return the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    settings = EngineSettings.from_environ()
    folder = settings.home / "spark" / settings.space.name
    with ForkServer(folder) as forks:
        # Java takes seconds to start; meanwhile a thread imports the rest.
        threading.Thread(target=importlib.import_module, args=["streaming.engine.run"]).start()
        java = java_home(settings.java_home, settings.home)
        archive = ClassArchive(java, folder)
        spark = start_session(settings, java, forks.python, archive.options)
        return importlib.import_module("streaming.engine.run").evaluate(spark, settings, archive)


if __name__ == "__main__":
    sys.exit(main())

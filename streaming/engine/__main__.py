"""Run the engine of one space: ``python -m streaming.engine``."""

import contextlib
import importlib
import logging
import sys
import threading

from streaming.engine.class_archive import ClassArchive
from streaming.engine.java import java_home
from streaming.engine.lease import Lease
from streaming.engine.python_workers import fork_server
from streaming.engine.session import start_session
from streaming.log_format import set_up
from streaming.own_folder import own_folder
from streaming.settings import EngineSettings

logger = logging.getLogger("lookout.engine")


def main() -> int:
    """Start Spark and evaluate continuous queries until a signal stops the engine; return the exit code.

    While another engine evaluates the space, this one stands by with Spark running.
    """
    settings = EngineSettings.from_environ()
    set_up(settings.log_format, "engine", settings.space.name)
    root = settings.home / "spark" / settings.space.name
    with contextlib.ExitStack() as held:
        lease = held.enter_context(Lease(root / "lease"))
        if not lease.take():
            logger.info("another engine evaluates the space; this one will stand by")
            lease.take(settings.standby_after_s)
        folder = held.enter_context(own_folder(root))
        forks = held.enter_context(fork_server(folder, lease.fileno()))
        # Java takes seconds to start. Meanwhile a thread imports the remaining modules.
        threading.Thread(target=importlib.import_module, args=["streaming.engine.run"]).start()
        java = java_home(settings.java_home, settings.home)
        archive = ClassArchive(java, folder)
        spark = start_session(settings, java, forks.python, archive.options)
        return importlib.import_module("streaming.engine.run").run(spark, settings, archive, lease)


if __name__ == "__main__":
    sys.exit(main())

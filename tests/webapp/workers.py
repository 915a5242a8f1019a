"""Celery's worker and beat in processes of their own, which tests kill."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

from django.db import connection

from bench.live import PATIENCE_S, ROOT
from webapp.live.programs import Installation, web_programs


class Workers:
    """A worker and beat on the database of a test; a context that ends both.

    Parameters
    ----------
    folder : Path
        The state folder, and where their logs are written.
    redis_url : str
    settings : str
        The module of settings.
    """

    def __init__(self, folder: Path, redis_url: str, settings: str) -> None:
        place = Installation(folder, redis_url, "127.0.0.1", 0)
        self.programs = {program.name: program for program in web_programs(place)}
        self.folder = folder
        agreed = {"LOOKOUT_HOME": str(folder), "LOOKOUT_REDIS_URL": redis_url, "DATABASE_URL": _database_url()}
        self.environment = os.environ | agreed | {"DJANGO_SETTINGS_MODULE": settings}
        self._ends = ExitStack()

    def __enter__(self) -> "Workers":
        self.beat = self._start("beat")
        self.live()
        return self

    def __exit__(self, *_) -> None:
        self._ends.close()

    def live(self) -> None:
        """Start a worker."""
        self.worker = self._start("worker")

    def die(self) -> None:
        """End the worker as by ``kill -9``."""
        self.worker.kill()
        self.worker.wait(PATIENCE_S)

    def log(self) -> str:
        """Return what the workers have written so far."""
        return (self.folder / "worker.log").read_text()

    def _start(self, name):
        with (self.folder / f"{name}.log").open("ab") as log:
            command = list(map(str, self.programs[name].command))
            process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        self._ends.callback(_end, process)
        return process


def _end(process):
    process.kill()
    process.wait(PATIENCE_S)


def _database_url():
    """Return the URL of the test's database."""
    place = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{place['NAME']}"
    return f"postgres://{place['USER']}@{place['HOST']}:{place['PORT']}/{place['NAME']}"

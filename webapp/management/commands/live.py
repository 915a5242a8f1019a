"""``manage.py live``: run all of Lookout under one supervisor until Ctrl-C."""

import asyncio
import contextlib
import logging
import os
import time

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from streaming.log_format import JsonFormatter
from streaming.settings import declared_redis_url
from webapp.live.home import CannotStart, check_address, embedded_redis_url, only_one
from webapp.live.programs import Installation
from webapp.live.run import run, start_all
from webapp.live.supervisor import StepFailed, Supervisor


class Command(BaseCommand):
    """Start Redis, the gateway, the engine, the web server and Celery; keep them running; end them all."""

    help = "Start everything, print a one-time login link, and keep it running until Ctrl-C."
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        """Run in the foreground."""
        try:
            with only_one(settings.HOME) as lock:
                check_address(settings.HOST, settings.PORT)
                self._run(lock)
        except (CannotStart, StepFailed) as error:
            raise CommandError(str(error)) from None

    def _run(self, lock: int) -> None:
        declared = declared_redis_url()
        place = Installation(
            home=settings.HOME,
            redis_url=declared or embedded_redis_url(settings.HOME),
            host=settings.HOST,
            port=settings.PORT,
            demo=settings.DEMO,
            proxies=settings.TRUSTED_PROXIES,
            standby=settings.STANDBY,
            redis_bytes=settings.REDIS_BYTES,
        )
        supervisor = Supervisor(
            logs=place.home / "log", environment=_environment(place), say=self._say, folder=settings.BASE_DIR, lock=lock
        )
        self._say(f"state in {place.home}, logs in {supervisor.logs}")
        asyncio.run(run(supervisor, lambda it: start_all(it, place, not declared, self._say), self._say))
        self._say("nothing is left running")

    def _say(self, text: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.stdout.write(_line(text))
            self.stdout.flush()


def _line(text: str) -> str:
    """Return what the supervisor says as a line of its log."""
    if settings.LOG_FORMAT == "json":
        return JsonFormatter("supervisor").format(logging.LogRecord("live", logging.INFO, "", 0, text, None, None))
    return f"{time.strftime('%H:%M:%S')}  {text}"


def _environment(place: Installation) -> dict[str, str]:
    """Return this process's environment, with the variables on which all programs must agree."""
    agreed = {
        "LOOKOUT_HOME": str(place.home),
        "LOOKOUT_REDIS_URL": place.redis_url,
        "LOOKOUT_HOST": place.host,
        "LOOKOUT_PORT": str(place.port),
        "LOOKOUT_STATIC_DIR": str(place.home / "static"),
        "PYTHONUNBUFFERED": "1",
        "MALLOC_ARENA_MAX": "2",  # one arena of glibc per thread would cost hundreds of megabytes
    }
    return {**os.environ, **agreed}

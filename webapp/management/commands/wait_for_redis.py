"""``manage.py wait_for_redis``: return as soon as Redis answers."""

import time

import redis
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.bus.redis import client

INTERVAL_S = 0.1


class Command(BaseCommand):
    """Wait until Redis answers."""

    help = "Wait until Redis answers; fail when it does not within the time."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS")

    def handle(self, *_: object, timeout: float, **__: object) -> None:
        """Wait."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                client().ping()
                return
            except redis.RedisError as error:
                if time.monotonic() > deadline:
                    address = settings.REDIS_URL.rpartition("@")[2]
                    raise CommandError(f"Redis must answer within {timeout:g} s at {address}; {error}") from None
            time.sleep(INTERVAL_S)

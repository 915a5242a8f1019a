"""``manage.py backup``: write a Lookout that runs into a folder, as it is at one moment."""

from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connection

from streaming.logs import Log
from webapp.backup.contents import Unusable
from webapp.backup.places import part_places
from webapp.backup.taking import back_up
from webapp.bus.redis import client
from webapp.management.prepared import PreparedCommand
from webapp.models.spaces import spaces_by_name


class Command(PreparedCommand):
    """Back up database, logs, states, layers and history."""

    help = "Write all of a Lookout that runs into a new folder, as it is at one moment. Nothing is stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", type=Path)

    def handle(self, *_: object, folder: Path, **__: Any) -> None:
        """Back up."""
        database = Path(connection.settings_dict["NAME"])
        try:
            logs = {space: Log(client(), space, settings.PARTITIONS) for space in spaces_by_name()}
            made = back_up(folder, part_places(), database, logs)
        except Unusable as error:
            raise CommandError(str(error)) from None
        except redis.ConnectionError as error:
            raise CommandError(f"Lookout must run; while it is stopped, copy the folder; {error}") from None
        size = sum(file.size for file in made.files.values())
        self.stdout.write(f"{len(made.files)} files with {size:,} bytes are in {folder}")

"""``manage.py restore``: bring a backup back into an empty state folder."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from webapp.backup.contents import Unusable
from webapp.backup.places import HISTORY, LAYERS, places_below
from webapp.backup.restoring import restore
from webapp.live.home import CannotStart


class Command(BaseCommand):
    """Restore a backup."""

    help = "Copy a backup into an empty state folder (LOOKOUT_HOME); then start Lookout there."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", type=Path)

    def handle(self, *_: object, folder: Path, **__: Any) -> None:
        """Restore."""
        places = places_below(settings.HOME) | {HISTORY: settings.HISTORY_DIR, LAYERS: settings.LAYERS_DIR}
        try:
            restored = restore(folder, settings.HOME, places)
        except (Unusable, CannotStart) as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{len(restored.files)} files of release {restored.release} are in {settings.HOME}")

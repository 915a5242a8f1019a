"""``manage.py collect_pages``: make the static files that browsers load, if their sources have changed."""

from django.core.management.base import BaseCommand

from webapp.pages.static import collect


class Command(BaseCommand):
    """Collect, hash and compress static files into `LOOKOUT_STATIC_DIR`."""

    help = "Collect, hash and compress the files that browsers load, where their sources have changed."
    requires_system_checks = ()

    def handle(self, *_: object, **__: object) -> None:
        """Collect."""
        self.stdout.write("collected" if collect() else "nothing has changed")

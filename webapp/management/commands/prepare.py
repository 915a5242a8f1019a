"""``manage.py prepare``: bring the database and the page's files up to date, before the web programs start."""

from io import StringIO
from pathlib import Path

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """Run in one process what else takes several, each of which takes two seconds to start."""

    help = "Bring the database and the files that browsers load up to date."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--demo", action="store_true", help="make what is missing of the demonstration, too")
        parser.add_argument("--link", type=Path, help="the file to write a login link to, or why there is none")

    def handle(self, *_: object, demo: bool, link: Path | None, **__: object) -> None:
        """Take each step, and say which one it is."""
        steps = {"migrate": {"interactive": False}, "collect_pages": {}} | ({"seed_demo": {}} if demo else {})
        for step, options in steps.items():
            self.stdout.write(f"{step} ...")
            call_command(step, stdout=self.stdout, no_color=True, **options)
        if link:
            link.touch(mode=0o600)
            link.write_text(_login_link())


def _login_link() -> str:
    told = StringIO()
    try:
        call_command("create_login_link", stdout=told)
    except CommandError as error:
        return f"no login link: {error}"
    return f"log in, once, at {told.getvalue().strip()}"

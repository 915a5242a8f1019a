"""``manage.py create_login_link``: print a URL that logs a user in, once."""

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser
from django.urls import reverse

from webapp.management.prepared import PreparedCommand
from webapp.models import LoginLink

FIRST_USER = "admin"


class Command(PreparedCommand):
    """Print a one-time login link; create the first user if there is none."""

    help = "Print a login link that works once, for one hour. Make the first user, with all rights, if there is none."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--user", help="the user to log in; by default the first one with all rights")

    def handle(self, *_: object, user: str | None = None, **__: object) -> None:
        """Print the link."""
        secret = LoginLink.issue(self._user(user))
        host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
        host = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)
        self.stdout.write(f"http://{host}:{settings.PORT}{reverse('login-once', args=[secret])}")

    def _user(self, name: str | None) -> User:
        users = get_user_model().objects
        if not users.exists():
            return users.create_superuser(name or FIRST_USER)
        if name is None:
            found = users.filter(is_superuser=True, is_active=True).order_by("pk").first()
        else:
            found = users.filter(username=name, is_active=True).first()
        if found is None:
            raise CommandError(f"user must be the name of an active user; got {name!r}")
        return found

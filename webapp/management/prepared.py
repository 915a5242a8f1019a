"""The base of commands that need a database with all migrations."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

FIRST = "start Lookout there once (make live), or run `manage.py migrate`"


class PreparedCommand(BaseCommand):
    """A command that fails with instructions if the database is missing or lacks migrations."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command if the database is ready; otherwise raise `CommandError`."""
        try:
            executor = MigrationExecutor(connection)
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except OperationalError as error:
            raise CommandError(f"the database must be there; {FIRST} first; got: {error}") from None
        if missing:
            where = f"the state folder {settings.HOME}" if connection.vendor == "sqlite" else "the database"
            raise CommandError(f"{where} must be ready; {FIRST} first; got {len(missing)} steps that are to be made")
        return super().execute(*args, **options)

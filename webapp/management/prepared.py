"""Commands that need the database of a Lookout that was started once."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

FIRST = "start Lookout there once (make live), or run `manage.py migrate`"


class PreparedCommand(BaseCommand):
    """A command that says what comes first where the database is not there, or is that of an older Lookout."""

    def execute(self, *args, **options):
        """Run the command on a database that is ready."""
        try:
            executor = MigrationExecutor(connection)
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except OperationalError as error:
            raise CommandError(f"the database must be there; {FIRST} first; got: {error}") from None
        if missing:
            where = f"the state folder {settings.HOME}" if connection.vendor == "sqlite" else "the database"
            raise CommandError(f"{where} must be ready; {FIRST} first; got {len(missing)} steps that are to be made")
        return super().execute(*args, **options)

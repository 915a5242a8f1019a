"""The command line of Lookout: ``lookout`` where it is installed, ``manage.py`` in a checkout."""

import os
import sys
from importlib.metadata import version

from django.core.management import execute_from_command_line


def main() -> None:
    """Run the command that the arguments of this process name, such as ``live``."""
    # What Lookout writes is for its own user alone; all programs that it starts inherit this.
    os.umask(0o077)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    # Django would tell its own version.
    if sys.argv[1:] in (["version"], ["--version"]):
        print(version("lookout"))
    else:
        execute_from_command_line(sys.argv)

#!/usr/bin/env python
"""Command line of Lookout's web project."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    # What Lookout writes is for its own user alone; all programs that it starts inherit this.
    os.umask(0o077)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    execute_from_command_line(sys.argv)

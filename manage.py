#!/usr/bin/env python
"""Command line of Lookout's web project, in a checkout."""

from webapp.command import main

if __name__ == "__main__":
    main()

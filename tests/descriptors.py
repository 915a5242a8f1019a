"""A process with many open files: `select.select` refuses descriptors above 1,023."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

HIGHEST_OF_SELECT = 1023


@contextmanager
def many_open() -> Iterator[None]:
    """Leave no descriptor free that `select.select` would take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * HIGHEST_OF_SELECT), hard))
    taken = [os.open(os.devnull, os.O_RDONLY)]
    while taken[-1] < HIGHEST_OF_SELECT:
        taken.append(os.dup(taken[0]))
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

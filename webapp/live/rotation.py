"""Log files that stay small while programs append to them."""

import shutil
from pathlib import Path

MOST_BYTES = 10 * 1024 * 1024
KEPT = 3


def rotate(log: Path, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> None:
    """Copy a log that grew too large to ``<log>.1``, older copies to higher numbers, and empty it.

    The programs hold the file open in append mode, so they go on at its new beginning.
    """
    if not log.exists() or log.stat().st_size <= most_bytes:
        return
    for number in range(kept - 1, 0, -1):
        older = log.with_name(f"{log.name}.{number}")
        if older.exists():
            older.replace(log.with_name(f"{log.name}.{number + 1}"))
    shutil.copyfile(log, log.with_name(f"{log.name}.1"))
    with log.open("r+b") as grown:
        grown.truncate(0)

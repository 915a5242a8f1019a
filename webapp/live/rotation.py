"""Keep log files small while programs append to them."""

import shutil
from pathlib import Path

MOST_BYTES = 10 * 1024 * 1024
KEPT = 3


def rotate(log: Path, most_bytes: int = MOST_BYTES, kept: int = KEPT) -> None:
    """Copy a log larger than `most_bytes` to ``<log>.1`` and empty it; rename older copies to higher numbers.

    At most `kept` copies stay. Programs hold the file open in append mode, so they continue at its new beginning.
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

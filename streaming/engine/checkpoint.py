"""Spark's checkpoint: which micro-batches Spark has planned, up to which positions, and which it has committed.

The manifests of the state decide where an engine continues. So the checkpoint is written anew at each start: the state
may be older than the checkpoint if files were broken, and a power cut may have damaged the checkpoint itself.
"""

import contextlib
import shutil
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from streaming.state.files import write_whole

_OFFSETS_HEAD = {"batchWatermarkMs": 0, "batchTimestampMs": 0, "conf": {}}
_COMMIT = {"nextBatchWatermarkMs": 0}
REPLAY = "replay.json"

Positions = Mapping[str, str]


def planned(checkpoint: Path) -> dict[int, Positions]:
    """Return up to where each batch of a checkpoint reads the logs; damaged files are left out."""
    found = {}
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        with contextlib.suppress(ValueError):
            _, _, positions = path.read_text().split("\n")
            found[int(path.name)] = orjson.loads(positions)
    return found


def committed(checkpoint: Path) -> int:
    """Return the last batch that Spark has committed; -1 if there is none."""
    return max((int(path.name) for path in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def write_checkpoint(checkpoint: Path, batch: int, positions: Positions) -> None:
    """Replace a checkpoint by one in which `batch` is the last one, and is committed; none is if `batch` is -1."""
    shutil.rmtree(checkpoint, ignore_errors=True)
    if batch >= 0:
        _write(checkpoint / "metadata", {"id": str(uuid.uuid4())}, version=())
        # Spark does not start without the plan of the batch before, though it reads it only if the last one runs again.
        for planned_batch in range(max(0, batch - 1), batch + 1):
            _write(checkpoint / "offsets" / str(planned_batch), _OFFSETS_HEAD, positions)
        _write(checkpoint / "commits" / str(batch), _COMMIT)


def _write(path, *documents, version=(b"v1",)):
    write_whole(path, b"\n".join([*version, *map(orjson.dumps, documents)]))


def following(cuts: Mapping[int, Positions], batch: int) -> list[Positions]:
    """Return the ends of the batches after `batch`, as long as they are known without a gap."""
    ends: list[Positions] = []
    while (end := cuts.get(batch + 1 + len(ends))) is not None:
        ends.append(end)
    return ends


def write_replay(folder: Path, first: int, cuts: Sequence[Positions]) -> None:
    """Write where batches that may run again begin and end: the start of batch `first`, then the end of each.

    A batch that runs again must read the same entries as before, because a part of its results may be published.
    """
    write_whole(folder / REPLAY, orjson.dumps({"first": first, "cuts": list(cuts)}))


def read_replay(folder: Path) -> tuple[int, list[Positions]]:
    """Return what `write_replay` wrote; nothing if the file is missing or damaged."""
    try:
        document = orjson.loads((folder / REPLAY).read_bytes())
        return document["first"], document["cuts"]
    except (FileNotFoundError, ValueError):
        return 0, []

"""Run imports in child processes: the parent's side."""

import logging
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Generator, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import orjson

from streaming.confined import IN_BACKGROUND, command
from streaming.language import gettext
from streaming.layers.features import InvalidLayer
from streaming.layers.job import Imported, Job
from streaming.layers.parts import FeatureSummary, bounds_from_json

logger = logging.getLogger(__name__)

# The caller gets control at least this often, so that it can end an import that is not wanted any more.
TURN_S = 0.25
STDERR = "stderr.txt"


def import_in_child(job: Job) -> Generator[float | Imported, None, None]:
    """Import a file (see `importing.import_file`) in a child process.

    Closing the iterator ends the process at once; only the files that it wrote into the job's folder are left.

    Parameters
    ----------
    job : Job

    Yields
    ------
    float
        The share that is done, several times a second, even if it has not changed.
    Imported
        The result, at the end.

    Raises
    ------
    InvalidLayer
        When the file cannot be imported, or takes longer than its time limit.
    """
    return _in_child(job, look=False)


def look_in_child(job: Job) -> Generator[Any, None, None]:
    """Look into a file (see `looking.look`) in a child process; what is found comes last.

    The parameters, and what is raised, are those of `import_in_child`.
    """
    return _in_child(job, look=True)


def _in_child(job: Job, look: bool) -> Generator[Any, None, None]:
    with (job.folder / STDERR).open("wb") as stderr:
        # The child has a session of its own, so that Ctrl-C reaches only the parent, which then ends the child.
        child = subprocess.Popen(
            command(IN_BACKGROUND, "streaming.layers"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd=Path(__file__).parents[2],
            start_new_session=True,
        )
    began_s = time.monotonic()
    try:
        for step in _followed(child, orjson.dumps(asdict(job) | {"look": look}, default=str), job.folder / STDERR):
            if time.monotonic() - began_s > job.limits.time_s:
                raise InvalidLayer(
                    "an import must take %(time_s)g s at most; this one takes longer", time_s=job.limits.time_s
                )
            yield step
    finally:
        _end(child)


def _followed(child: subprocess.Popen[bytes], job: bytes, stderr: Path) -> Iterator[Any]:
    assert child.stdin is not None and child.stdout is not None  # both are pipes
    child.stdin.write(job)
    child.stdin.close()
    share = 0.0
    for line in _lines(child.stdout):
        words: dict[str, Any] = orjson.loads(line) if line else {"share": share}
        if "error" in words:
            raise InvalidLayer.of_document(words["error"])
        if "seen" in words:
            yield words["seen"]
            return
        if "imported" in words:
            yield _imported(words["imported"])
            return
        share = words["share"]
        yield share
    code = child.wait()
    logger.error("an import ended with code %s: %s", code, stderr.read_text(errors="replace").strip())
    raise InvalidLayer("an import must come to its end; this one %(how)s", how=_how_it_ended(code))


def _lines(pipe: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a pipe, and an empty line whenever none has arrived for `TURN_S` seconds."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        rest = b""
        while True:
            if not selector.select(TURN_S):
                yield b""
                continue
            chunk = os.read(pipe.fileno(), 1 << 16)
            if not chunk:
                return
            *lines, rest = (rest + chunk).split(b"\n")
            yield from lines


def _imported(words: dict[str, Any]) -> Imported:
    summary = words["summary"]
    return Imported(
        Path(words["part"]),
        FeatureSummary(summary["features"], bounds_from_json(summary["bounds"]), tuple(summary["geometry_types"])),
        [(row, reason) for row, reason in words["problems"]],
        words["problem_count"],
    )


def _how_it_ended(code: int) -> str:
    if code < 0:
        return gettext("was ended by %(name)s") % {"name": signal.Signals(-code).name}
    return gettext("ended with code %(code)s, and the log says why") % {"code": code}


def _end(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None  # it is a pipe
    child.kill()  # it has nothing to clean up: all that it writes is in the job's folder
    child.wait()
    child.stdout.read()  # which ends with what was forked
    child.stdout.close()

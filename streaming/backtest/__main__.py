"""A back-test in a process of its own: ``python -m streaming.backtest <bytes>``, with so much memory.

The question is a JSON object on standard input; see `question_of`. Lines of JSON come out: several times a second one
with `share`, `at_us`, `elements` and `found`, and at last one with the summary, or with `error`. Whoever does not want
the rest ends the process: it has nothing to clean up but a folder of temporary files.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from streaming.backtest.asked import BacktestLimits, BacktestRequest
from streaming.backtest.play import Playing
from streaming.backtest.reading import StoredElements
from streaming.backtest.summary import QuerySummary
from streaming.children import too_large
from streaming.confined import confine, memory_errors
from streaming.errors import LookoutError
from streaming.history import History
from streaming.spaces import parse_space

TOLD_EVERY_S = 0.25


def question_of(document: dict[str, Any]) -> BacktestRequest:
    """Return the question of a JSON object with the fields of `BacktestRequest`; keys of `plans` are texts."""
    plans = {int(number): plan for number, plan in document["plans"].items()}
    space, limits = parse_space(document["space"]), BacktestLimits(**document["limits"])
    return BacktestRequest(
        plans, tuple(document["span"]), document["ttl_s"], document["layers"], space, limits, moves=False
    )


def lines(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Make a back-test; yield how it goes, then the summary of the query `of`.

    Parameters
    ----------
    document : dict
        As in `question_of`, with the query `of`, the folders `history` and `layers_folder`, and `spans`, the most spans
        that are told one by one.
    """
    asked, began_s = question_of(document), time.monotonic()
    elements = StoredElements(History(Path(document["history"]), asked.space), asked)
    playing, summary = Playing(asked, Path(document["layers_folder"])), QuerySummary(document["of"], asked.space)
    found, told_s = 0, began_s
    yield _state(playing, elements, found)
    for played in playing.play(elements):
        found += summary.take(played.rows)
        if time.monotonic() - told_s > TOLD_EVERY_S:
            told_s = time.monotonic()
            yield _state(playing, elements, found)
    yield _state(playing, elements, found) | {
        "stopped": playing.stopped,
        "seconds": round(time.monotonic() - began_s, 3),
        "summary": summary.document(document["spans"]),
    }


def _state(playing: Playing, elements: StoredElements, found: int) -> dict[str, Any]:
    at_us = playing.clock_us
    read = {"elements": playing.elements, "of": elements.total, "stored": elements.stored}
    return {"share": playing.share, "at_us": at_us, "found": found} | read


def main() -> None:
    """Read the question, and write the lines."""
    memory_bytes = int(sys.argv[1])
    confine(memory_bytes)
    try:
        with memory_errors():
            for line in lines(orjson.loads(sys.stdin.buffer.read())):
                _write(line)
    except LookoutError as error:
        _write({"error": error.document()})
    except MemoryError:
        _write({"error": too_large(memory_bytes).document()})


def _write(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

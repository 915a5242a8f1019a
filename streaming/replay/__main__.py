"""Answer questions for pages of answers in a process of its own: ``python -m streaming.replay <bytes of memory>``.

The first line of standard input is a JSON object: what is played (`sessions.ReplayPlan`). Each further line asks for a
page: ``{"to_us", "rows", "seconds"}``. Standard output gets, for each, eight bytes with the length of what follows, and
then a binary frame (`results.frame`), or a JSON object with an ``error``. The process ends with its standard input.
"""

import sys
from pathlib import Path
from typing import Any

import orjson

from streaming.backtest import BacktestLimits, BacktestRequest, Playing, StoredElements
from streaming.children import too_large
from streaming.confined import confine
from streaming.errors import LookoutError
from streaming.history import History
from streaming.replay.answers import AnswerPages
from streaming.results import frame
from streaming.spaces import parse_space

CHUNK_ROWS = 100_000
ENDLESS = BacktestLimits(elements=sys.maxsize, seconds=float("inf"))


def main() -> None:
    """Answer until standard input ends."""
    memory_bytes = int(sys.argv[1])
    confine(memory_bytes)
    lines = iter(sys.stdin.buffer.readline, b"")
    pages = None
    question = orjson.loads(next(lines, b"{}"))
    for line in lines:
        try:
            pages = pages or _pages(question)
            page = pages.page(**orjson.loads(line))
            head = {"type": "replay.answers", "begins": page.begins, "from_us": page.from_us, "until_us": page.until_us}
            _say(frame(head | {"queries": question["queries"], "refused": question["refused"]}, page.rows))
        except LookoutError as error:
            _say(orjson.dumps({"error": error.document()}))
        except MemoryError:
            _say(orjson.dumps({"error": too_large(memory_bytes).document()}))


def _pages(question: dict[str, Any]) -> AnswerPages:
    space = parse_space(question["space"])
    plans = {int(number): plan for number, plan in question["plans"].items()}
    span = question["from_us"], question["end_us"]
    asked = BacktestRequest(plans, span, question["ttl_s"], question["layers"], space, ENDLESS)
    elements = StoredElements(History(Path(question["history"]), space), asked, CHUNK_ROWS)
    return AnswerPages(Playing(asked, Path(question["layers_folder"])), elements, question["queries"])


def _say(answer: bytes) -> None:
    sys.stdout.buffer.write(len(answer).to_bytes(8, "big") + answer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

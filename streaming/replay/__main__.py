"""Answer questions for pages of answers in a process of its own: ``python -m streaming.replay <bytes of memory>``.

The first line of standard input is a JSON object: what is played (`sessions.ReplayPlan`). Each further line asks for
the next page, ``{"to_us", "rows", "seconds"}``, or for the answers at a time, ``{"scene_us"}``. Standard output gets,
for each, eight bytes with the length of what follows, and then a binary frame (`results.frame`), or a JSON object with
an ``error``. The process ends with its standard input.
"""

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import orjson

from streaming.backtest import BacktestLimits, BacktestRequest, Playing, StoredElements
from streaming.children import too_large
from streaming.confined import confine, memory_errors
from streaming.errors import LookoutError
from streaming.history import History
from streaming.plans import parse_plan
from streaming.replay.answers import AnswerPage, AnswerPages, no_rows, scene, told_at_once
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
            asked = orjson.loads(line)
            with memory_errors():
                if "scene_us" in asked:
                    _tell(_scene(question, asked["scene_us"]), _at_once(question), question)
                else:
                    pages = pages or AnswerPages(*_played(question), question["queries"])
                    _tell(pages.page(**asked), question["queries"], question)
        except LookoutError as error:
            _say(orjson.dumps({"error": error.document()}))
        except MemoryError:
            _say(orjson.dumps({"error": too_large(memory_bytes).document()}))


def _at_once(question: dict[str, Any]) -> list[int]:
    """Return those of the queries that `scene` answers."""
    space, plans = parse_space(question["space"]), question["plans"]
    return [number for number in question["queries"] if told_at_once(parse_plan(plans[str(number)], space))]


def _scene(question: dict[str, Any], at_us: int) -> AnswerPage:
    queries = _at_once(question)
    if not queries:
        return AnswerPage(no_rows(parse_space(question["space"])), True, at_us, at_us)
    plans = {str(number): question["plans"][str(number)] for number in queries}
    span = {"from_us": at_us, "end_us": at_us + 1}  # what was heard from then on is not read
    return scene(*_played(question | {"plans": plans} | span), queries)


def _played(question: dict[str, Any]) -> tuple[Playing, StoredElements]:
    space = parse_space(question["space"])
    plans = {int(number): plan for number, plan in question["plans"].items()}
    span = question["from_us"], question["end_us"]
    asked = BacktestRequest(plans, span, question["ttl_s"], question["layers"], space, ENDLESS)
    elements = StoredElements(History(Path(question["history"]), space), asked, CHUNK_ROWS)
    return Playing(asked, Path(question["layers_folder"])), elements


def _tell(page: AnswerPage, queries: Collection[int], question: dict[str, Any]) -> None:
    head = {"type": "replay.answers", "begins": page.begins, "from_us": page.from_us, "until_us": page.until_us}
    _say(frame(head | {"queries": queries, "refused": question["refused"]}, page.rows))


def _say(answer: bytes) -> None:
    sys.stdout.buffer.write(len(answer).to_bytes(8, "big") + answer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

"""What the registry knows of one query. Each plan is parsed once in a process, however often its text is read."""

import functools
import hashlib
import logging
import weakref
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from streaming.errors import LookoutError
from streaming.kinds.base import Plan
from streaming.plans import parse_plan, plan_document
from streaming.results import ANSWER_NUMBERS
from streaming.servers.control.columns import Row, bits_of
from streaming.servers.control.levels import Level
from streaming.spaces import Space

logger = logging.getLogger(__name__)

REFUSED = "this release refuses the plan, so the query has ended; edit it to start it again: {}"
SCHEMA = pa.schema(
    [
        pa.field("query", pa.int64()),
        pa.field("revision", pa.int64()),
        pa.field("plan", pa.binary()),
        pa.field("error", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ParsedPlan:
    """A plan, its JSON text as `plan_document` gives it, the number of its answer, and what the query is.

    For the bits see `columns.bits_of`.
    """

    plan: Plan
    text: bytes
    answer: int
    bits: int


# Texts as they were written last, by programs that each have their own order and spacing.
TEXTS_KEPT = 1_000
# By space and `ParsedPlan.text`; a plan stays as long as something has it.
_PARSED: dict[Space, "weakref.WeakValueDictionary[bytes, ParsedPlan]"] = defaultdict(weakref.WeakValueDictionary)


def parsed(text: bytes, space: Space) -> ParsedPlan:
    """Return the plan with a JSON text; a text is parsed once in a process, and equal plans are one object.

    Raises
    ------
    InvalidPlan
        See `parse_plan`.
    """
    return _PARSED[space].get(text) or _parsed(text, space)


@functools.lru_cache(maxsize=TEXTS_KEPT)
def _parsed(text, space):
    plan = parse_plan(orjson.loads(text), space)
    canonical = orjson.dumps(plan_document(plan, space))
    return _PARSED[space].setdefault(canonical, ParsedPlan(plan, canonical, _answer_number(canonical), bits_of(plan)))


@dataclass(frozen=True, slots=True)
class Registration:
    """A registered query.

    Parameters
    ----------
    revision : int
        Rises with each change of the query.
    parsed : ParsedPlan or None
        None once cancelled.
    error : str
        Why this release refuses a plan that an earlier release accepted; there is no plan then.
    """

    revision: int
    parsed: ParsedPlan | None = None
    error: str = ""

    @property
    def plan(self) -> Plan | None:
        """The plan; None once cancelled."""
        return self.parsed.plan if self.parsed else None

    def row(self, query: int) -> list[Row]:
        """Return the row of the query with a number, none once cancelled."""
        told = self.parsed
        return [Row(query, told.answer, told.plan, told.bits)] if told else []

    @property
    def answer(self) -> int:
        """The number of the query's answer, which queries with equal plans share; 0 once cancelled."""
        return self.parsed.answer if self.parsed else 0


def level_table(level: Level[Registration]) -> pa.Table:
    """Return a level of registrations as a table; `level_of` is the inverse.

    A removed registration has no revision, and one of a cancelled query no plan.
    """
    known = [(query, told) for query, told in level.entries.items()]
    columns = {
        "query": [query for query, _ in known],
        "revision": [told and told.revision for _, told in known],
        "plan": [told and told.parsed and told.parsed.text for _, told in known],
        "error": [told and told.error for _, told in known],
    }
    return pa.table(columns, schema=SCHEMA)


def level_of(number: int, table: pa.Table, space: Space) -> Level[Registration]:
    """Return the level with a number that `level_table` wrote."""
    return Level(number, {row["query"]: _restored(row, space) for row in table.to_pylist()})


def _restored(row: Mapping[str, Any], space: Space) -> Registration | None:
    """Return a registration that was written; if this release refuses its plan, the query has ended."""
    if row["revision"] is None:
        return None
    try:
        return Registration(row["revision"], row["plan"] and parsed(row["plan"], space), row["error"])
    except Exception as refusal:  # whatever an earlier release accepted, the other queries go on
        error = REFUSED.format(words(refusal))
        logger.error("query %d: %s", row["query"], error)
        return Registration(row["revision"], error=error)


def words(error: Exception) -> str:
    """Return the text of a refusal; an error that is not a `LookoutError` is a bug, so its class is named, too."""
    return str(error) if isinstance(error, LookoutError) else f"{type(error).__name__}: {error}"


def _answer_number(text):
    """Return the number of a plan's answer; equal plans have equal numbers, in every process and after a restart."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % ANSWER_NUMBERS | ANSWER_NUMBERS

"""What the registry knows of one query. Equal plans are one object in a process."""

import hashlib
import logging
import weakref
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from streaming.errors import LookoutError
from streaming.kinds.base import Plan
from streaming.language import gettext_noop
from streaming.operators.asked import NOBODY
from streaming.plans.together import parse_together
from streaming.results import ANSWER_NUMBERS
from streaming.servers.control.columns import bits_of
from streaming.servers.control.levels import Level
from streaming.spaces import Space

logger = logging.getLogger(__name__)

REFUSED = gettext_noop("this release refuses the plan, so the query has ended; edit it to start it again: %(error)s")
SCHEMA = pa.schema(
    [
        pa.field("query", pa.int64()),
        pa.field("revision", pa.int64()),
        pa.field("plan", pa.binary()),
        pa.field("error", pa.string()),
        pa.field("answer", pa.int64()),
        pa.field("owner", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ParsedPlan:
    """A plan, its JSON text as `plan_document` gives it, the number that its answer has at first, and what it is.

    For the bits see `columns.bits_of`.
    """

    plan: Plan
    text: bytes
    answer: int
    bits: int


# By space and `ParsedPlan.text`; a plan stays as long as something has it.
_PARSED: dict[Space, "weakref.WeakValueDictionary[bytes, ParsedPlan]"] = defaultdict(weakref.WeakValueDictionary)


def parsed_together(documents: Sequence[Any], space: Space) -> list[ParsedPlan | Exception]:
    """Return the plans of JSON documents, or what is wrong with them; equal plans are one object in a process.

    Documents that differ in their boxes alone are read together; see `parse_together`.
    """
    known = _PARSED[space]
    plans: list[ParsedPlan | Exception] = []
    like, bits = None, 0
    for outcome in parse_together(documents, space):
        if isinstance(outcome, Exception):
            plans.append(outcome)
            continue
        plan, text, alike = outcome
        found = known.get(text)
        if found is None:
            if alike is not like:
                like, bits = alike, bits_of(alike)
            known[text] = found = ParsedPlan(plan, text, answer_number(text), bits)
        plans.append(found)
    return plans


class Registration(NamedTuple):
    """A registered query.

    Parameters
    ----------
    revision : int
        Rises with each change of the query.
    parsed : ParsedPlan or None
        None once cancelled.
    error : str
        Why this release refuses a plan that an earlier release accepted; there is no plan then.
    own_answer : int or None
        The number of the answer if it is not that of the plan; see `answer_numbers`.
    owner : int
        Whom the query counts for where there is not room for all queries.
    """

    revision: int
    parsed: ParsedPlan | None = None
    error: str = ""
    own_answer: int | None = None
    owner: int = NOBODY

    @property
    def plan(self) -> Plan | None:
        """The plan; None once cancelled."""
        return self.parsed.plan if self.parsed else None

    @property
    def answer(self) -> int:
        """The number of the query's answer, which queries with equal plans share; 0 once cancelled."""
        if self.own_answer is not None:
            return self.own_answer
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
        "answer": [told and told.own_answer for _, told in known],
        "owner": [told and told.owner for _, told in known],
    }
    return pa.table(columns, schema=SCHEMA)


def level_of(number: int, table: pa.Table, space: Space) -> Level[Registration]:
    """Return the level with a number that `level_table` wrote; an earlier release wrote no owners."""
    if "owner" not in table.column_names:
        table = table.append_column(SCHEMA.field("owner"), pa.nulls(len(table), pa.int64()))
    query, revision, text, error, answer, owner = (table[name].to_pylist() for name in SCHEMA.names)
    plans = _of_texts(text, space)
    return Level(number, dict(zip(query, map(_restored, query, revision, plans, error, answer, owner), strict=True)))


def _of_texts(texts: Sequence[bytes | None], space: Space) -> list[ParsedPlan | Exception | None]:
    """Return the plans of canonical texts, or why this release refuses them; None for None."""
    plans: dict[bytes, ParsedPlan | Exception | None] = {
        text: _PARSED[space].get(text) for text in texts if text is not None
    }
    missing = [text for text, known in plans.items() if known is None]
    plans |= zip(missing, parsed_together(list(map(orjson.loads, missing)), space), strict=True)
    return [None if text is None else plans[text] for text in texts]


def _restored(
    query: int,
    revision: int | None,
    plan: ParsedPlan | Exception | None,
    error: str | None,
    answer: int | None,
    owner: int | None,
) -> Registration | None:
    """Return a registration that was written; if this release refuses its plan, the query has ended."""
    if revision is None:
        return None
    if isinstance(plan, Exception):  # whatever an earlier release accepted, the other queries go on
        error = REFUSED % {"error": words(plan)}
        logger.error("query %d: %s", query, error)
        return Registration(revision, error=error)
    return Registration(revision, plan, error or "", answer, owner or NOBODY)


def words(error: Exception) -> str:
    """Return the text of a refusal; an error that is not a `LookoutError` is a bug, so its class is named, too."""
    return str(error) if isinstance(error, LookoutError) else f"{type(error).__name__}: {error}"


def answer_number(text: bytes) -> int:
    """Return the number of an answer, given a text; it is the same in every process and after a restart."""
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % ANSWER_NUMBERS | ANSWER_NUMBERS

"""Net the result tuples of all regions: several tuples of one query in one micro-batch become one answer.

References
----------
PLACE* (2007), sections 4.2 and 4.4: the assembler merges the partial answers of the participating servers, and an
object's handoff between servers is no change of the answer.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.errors import LookoutError
from streaming.operators.runs import expand, find
from streaming.results import (
    ENTERED,
    HANDOFF,
    MOVED,
    PARTNER_FILTERED,
    PARTNER_HANDOFF,
    PARTNER_MOVED,
    QUIET_HANDOFF,
    QUIET_PARTNER_HANDOFF,
    STAYED,
    Fragment,
)

HANDOFFS = (HANDOFF, QUIET_HANDOFF, PARTNER_HANDOFF, QUIET_PARTNER_HANDOFF)
OF_PARTNERS = (PARTNER_HANDOFF, QUIET_PARTNER_HANDOFF, PARTNER_MOVED, PARTNER_FILTERED)


class LostAnswer(LookoutError):
    """A region's part of an answer has ended, but the region could not report it."""


def net(fragments: Sequence[Fragment], queries: Collection[int] | None = None) -> pa.Table:
    """Return the result tuples of one micro-batch, ordered by query, ``-`` before ``~`` before ``+``.

    Parameters
    ----------
    fragments : sequence of Fragment
        Of all regions of one batch, one each.
    queries : collection of int, optional
        The queries whose tuples are wanted; all by default.

    Raises
    ------
    LostAnswer
        If a region lost its part of the answer of one of `queries`.

    Returns
    -------
    pyarrow.Table
        With `results.result_schema`. An object that left the answer in one region and entered it in another is ``~``;
        it gives no tuple if the answer reports membership alone. An object that departed from a region and entered the
        answer in no other is ``-`` with the reason ``moved``, or ``partner_moved`` if its partner decided. Tuples of a
        shared answer repeat for each of its queries.
    """
    failures = (failure for fragment in fragments for failure in fragment.failures if failure.get("lost"))
    for query, error in ((query, failure["error"]) for failure in failures for query, _ in failure["queries"]):
        if queries is not None and query in queries:
            raise LostAnswer("it begins anew, since a part of it failed: %(error)s", error=error)
    table = fanned_out(*settled(fragments, queries))
    return table.take(pc.sort_indices(table, [("query", "ascending"), ("sign", "ascending")]))


def settled(
    fragments: Sequence[Fragment], queries: Collection[int] | None = None
) -> tuple[pa.Table, dict[int, tuple[int, ...]]]:
    """Return the tuples of `net` in any order, those of shared answers once, and the queries that share each."""
    shared = {answer: members for fragment in fragments for answer, members in fragment.shared.items()}
    tables = [fragment.changes for fragment in fragments]
    if queries is not None:
        wanted = frozenset(queries)
        shared = {a: mine for a, members in shared.items() if (mine := tuple(q for q in members if q in wanted))}
        chosen = pa.array([*wanted, *shared], pa.int64())
        tables = [table.filter(pc.is_in(table["query"], value_set=chosen)) for table in tables]
    table = pa.concat_tables(tables)
    reason = table["reason"].to_numpy()
    handoff = np.isin(reason, HANDOFFS)
    return (_settle(table, reason, handoff) if handoff.any() else table), shared


def fanned_out(rows: pa.Table, shared: Mapping[int, tuple[int, ...]]) -> pa.Table:
    """Return tuples in their order, with each tuple of a shared answer once for every query that shares it."""
    if not shared:
        return rows
    query, answers = rows["query"].to_numpy(), np.array(sorted(shared), dtype=np.int64)
    members = [np.array(shared[answer], dtype=np.int64) for answer in answers.tolist()]
    sizes = np.array([len(queries) for queries in members])
    place, of_many = find(answers, query)
    start, count = np.zeros(len(query), dtype=np.int64), np.ones(len(query), dtype=np.int64)
    start[of_many], count[of_many] = (np.cumsum(sizes) - sizes)[place[of_many]], sizes[place[of_many]]
    row, position = expand(start, count)
    told = np.where(of_many[row], np.concatenate(members)[position], query[row])
    column = rows.schema.get_field_index("query")
    return rows.take(pa.array(row)).set_column(column, rows.schema.field(column), pa.array(told))


def _settle(table: pa.Table, told_as: np.ndarray, handoff: np.ndarray) -> pa.Table:
    """Pair each handoff with the entry in another region, if there is one."""
    sign = table["sign"].to_numpy().copy()
    concerned = np.flatnonzero(handoff | (sign == ENTERED))
    names = np.stack([table[name].to_numpy()[concerned] for name in ("query", "key_hash", "partner_hash")])
    pair = np.full(len(sign), -1, dtype=np.int64)
    pair[concerned] = np.unique(names, axis=1, return_inverse=True)[1].reshape(-1)
    entered = (sign == ENTERED) & np.isin(pair, pair[handoff])
    sign[entered] = STAYED
    moved = np.where(np.isin(told_as, OF_PARTNERS), PARTNER_MOVED, MOVED)
    reason = np.where(handoff | entered, moved, told_as).astype(np.int8)
    quiet = entered & np.isin(pair, pair[np.isin(told_as, (QUIET_HANDOFF, QUIET_PARTNER_HANDOFF))])
    keep = ~(handoff & np.isin(pair, pair[entered])) & ~quiet
    table = table.set_column(table.schema.get_field_index("sign"), table.schema.field("sign"), pa.array(sign))
    table = table.set_column(table.schema.get_field_index("reason"), table.schema.field("reason"), pa.array(reason))
    return table.filter(pa.array(keep))

"""What a region tells the assembler of the answers that rules watch: who entered and who left.

The assembler looks at rules when the clock is set. Until then a region keeps what it has to tell.
"""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streaming.operators.runs import find
from streaming.results import STAYED
from streaming.results.netting import fanned_out
from streaming.servers.answers.tuples import Results
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.state.codec import HEAD, Codec, Tables

COLUMNS = ("query", "sign", "key_hash", "partner_hash", "time_us")
SCHEMA = pa.schema([*((name, pa.int8() if name == "sign" else pa.int64()) for name in COLUMNS), ("batch", pa.int64())])


def concern_rules(before: Registry, after: Registry, applied: Applied) -> bool:
    """Tell whether the assembler looks at rules in a micro-batch.

    It does when the clock is set, when the clock of a rule is asked for, when queries or regions change, and in each
    one if it assembles an answer that a rule watches.
    """
    if not len(before.watched) and not len(after.watched):
        return False
    touched = bool(len(applied.changed) or len(applied.cancelled) or applied.snapshots or applied.dropped)
    touched = touched or bool(applied.clocks)
    return touched or bool(applied.now_us) or before.region_map != after.region_map or after.watches_assembled


@dataclass(frozen=True)
class Watched:
    """Changes of answers that rules watch, and whole answers, of one region, under the numbers of the queries.

    Parameters
    ----------
    changes, snapshots : pyarrow.Table
        With `SCHEMA`. As in a fragment, an object that went to another region left here and entered there.
    """

    changes: pa.Table = field(default_factory=SCHEMA.empty_table)
    snapshots: pa.Table = field(default_factory=SCHEMA.empty_table)

    @classmethod
    def of(cls, results: Results, control: ControlStep, batch: int) -> "Watched":
        """Return what the results of a server in a micro-batch tell of the answers that rules watch."""
        queries = control.after.watched
        names, shared = queries, {}
        if results.shared:
            several = {answer: np.array(members, dtype=np.int64) for answer, members in results.shared.items()}
            mine = {answer: members[find(queries, members)[1]].tolist() for answer, members in several.items()}
            shared = {answer: tuple(members) for answer, members in mine.items() if members}
            names = np.union1d(queries, np.array(list(shared), dtype=np.int64))
        changes = _chosen(results.changes, names, batch)
        changes = changes.filter(pa.array(changes["sign"].to_numpy() != STAYED))
        return cls(fanned_out(changes, shared), _chosen(results.snapshots, queries, batch))

    def after(self, earlier: "Watched") -> "Watched":
        """Return these changes after those of earlier micro-batches."""
        return Watched(pa.concat_tables([earlier.changes, self.changes]), self.snapshots)


def _chosen(table, queries, batch):
    mine = find(queries, table["query"].to_numpy())[1]
    chosen = table.select(COLUMNS).filter(pa.array(mine))
    return chosen.append_column(SCHEMA.field("batch"), pa.array(np.full(chosen.num_rows, batch))).cast(SCHEMA)


def _decoded(parts):
    return Watched(*parts[HEAD].tables())


WATCHED = Codec(lambda batch: Watched(), lambda state: {HEAD: Tables([state.changes, state.snapshots])}, _decoded)

"""Assembler shipping: read the result log back, so that a client continues at another hub where it left off.

References
----------
PLACE* (2007), section 4.4, phase II: the assembler of a query moves with its issuer; tuples are neither duplicated nor
lost, and their order is not changed.
"""

from dataclasses import dataclass
from typing import Any

from streaming.eventlog import FIRST
from streaming.logs import read_fragment
from streaming.results import Fragment
from streaming.spaces import Space
from webapp.hub.assembly import Assembly

ENTRIES_PER_READ = 32


@dataclass(frozen=True)
class ResumePoint:
    """A batch at whose end somebody holds the answers.

    Parameters
    ----------
    epoch : str
        Epoch of the batch.
    batch : int
        Number of the batch.
    """

    epoch: str
    batch: int


async def fragments_back_to(
    event_log: Any, log: str, space: Space, held: ResumePoint | None
) -> tuple[str, list[Fragment]]:
    """Return the position of a result log's newest entry, and the fragments after batch `held`, the oldest first.

    Some fragments of `held` and of earlier batches may precede them. Without `held`, it is the batch two before the
    newest one.
    """
    fragments: list[Fragment] = []
    newest, before = FIRST, None
    while entries := await event_log.read_back(log, before, ENTRIES_PER_READ):
        newest = newest if fragments else entries[0].position
        fragments += [read_fragment(entry.fields, space) for entry in entries]
        held = held or ResumePoint(fragments[0].epoch, fragments[0].batch - 2)
        if fragments[-1].epoch != held.epoch or fragments[-1].batch <= held.batch:
            break
        before = entries[-1].position
    return newest, fragments[::-1]


async def assembly_of(event_log: Any, log: str, space: Space) -> tuple[Assembly, str, ResumePoint | None]:
    """Return an assembly that has read a result log, the position of its newest entry, and its last whole batch."""
    newest, fragments = await fragments_back_to(event_log, log, space, None)
    assembly, whole = Assembly(), None
    for fragment in fragments:
        batch = assembly.add(fragment)
        whole = whole if batch is None else ResumePoint(batch.epoch, batch.number)
    return assembly, newest, whole

"""Assembler shipping: the result log read back, so that whoever comes to another assembler goes on where it left off.

References
----------
PLACE* (2007), section 4.4, phase II: the assembler of a query moves with its issuer; tuples are neither duplicated nor
lost, and their order is not changed.
"""

from dataclasses import dataclass

import redis.asyncio

from streaming.logs import FIRST, read_fragment
from streaming.results import Fragment
from streaming.spaces import Space
from webapp.hub.assembly import Assembly, Batch

ENTRIES_PER_READ = 32


@dataclass(frozen=True)
class ResumePoint:
    """How far somebody holds answers: to the end of a batch.

    Parameters
    ----------
    epoch : str
    batch : int
    """

    epoch: str
    batch: int


async def fragments_back_to(
    client: redis.asyncio.Redis, log: str, space: Space, held: ResumePoint | None
) -> tuple[str, list[Fragment]]:
    """Return the id of a result log's newest entry, and the fragments behind what is held, the oldest first.

    Held ones go before them as far as they were read. Where nothing is held, two batches before the newest count so.
    """
    fragments: list[Fragment] = []
    newest, last = FIRST, "+"
    while entries := await client.xrevrange(log, max=last, count=ENTRIES_PER_READ):
        newest = newest if fragments else entries[0][0]
        fragments += [read_fragment(fields, space) for _, fields in entries]
        held = held or ResumePoint(fragments[0].epoch, fragments[0].batch - 2)
        if fragments[-1].epoch != held.epoch or fragments[-1].batch <= held.batch:
            break
        last = b"(" + entries[-1][0]
    return newest, fragments[::-1]


async def assembly_of(client: redis.asyncio.Redis, log: str, space: Space) -> tuple[Assembly, str, ResumePoint | None]:
    """Return an assembly that knows of a result log what is in it now, up to which entry, and its last whole batch."""
    newest, fragments = await fragments_back_to(client, log, space, None)
    assembly, whole = Assembly(), None
    for fragment in fragments:
        batch = assembly.add(fragment)
        whole = whole if batch is None else ResumePoint(batch.epoch, batch.number)
    return assembly, newest, whole


async def missed(
    client: redis.asyncio.Redis, log: str, space: Space, held: ResumePoint, told: ResumePoint | None
) -> list[Batch] | None:
    """Return the batches behind what a client holds, up to what was told, or None where they are not all there.

    Parameters
    ----------
    held : ResumePoint
        By the client.
    told : Held or None
        What the hub has told its subscribers already; batches behind it are still to come to all of them.
    """
    if told is None or told.epoch != held.epoch:
        return None
    _, fragments = await fragments_back_to(client, log, space, held)
    known = [fragment.batch for fragment in fragments if fragment.epoch == held.epoch]
    if max(known, default=-1) < held.batch:
        return None  # it holds what the log has never said
    assembly = Assembly(held.epoch, held.batch)
    batches = [batch for fragment in fragments if (batch := assembly.add(fragment)) is not None]
    if any(batch.gap or batch.new_epoch for batch in batches) or assembly.done < told.batch:
        return None
    return [batch for batch in batches if batch.number <= told.batch]

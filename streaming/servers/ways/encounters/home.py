"""Encounters in a home server: it releases the reports of objects in the order of event time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from streaming.operators.encounters import Ordering
from streaming.operators.watermarks import Progress
from streaming.servers.home_turn import EncodedPart, HomePart, HomeTurn
from streaming.servers.report_queue import ReportQueue, waiting_schema
from streaming.servers.runs_codec import table_of
from streaming.servers.ways.encounters import ordering
from streaming.servers.ways.encounters.ordering import Ordered, Orderings, no_last
from streaming.spaces import Space
from streaming.state.codec import Parts, StatePart

ORDERINGS, RELEASED, LATE, TURN = "orderings", "released", "late", "turn"


class OrderingsPart(HomePart):
    """The reports that a home server holds, and how far it is with them: `Orderings`."""

    name = ORDERINGS

    def encode(self, part: Orderings) -> EncodedPart:
        """Return how they are stored."""
        held, tables = [], {}
        parts: dict[str, StatePart] = {}
        for one, known in part.ordered.items():
            name = _name(one)
            held.append([*one, known.queue.head(), *known.progress[:2], known.since_us, known.forgotten_us])
            tables[f"last-{name}"] = known.last
            parts |= known.queue.parts(f"held-{name}")
        return EncodedPart({ORDERINGS: held, TURN: part.turn}, tables, parts)

    def decode(self, head: Mapping[str, Any], parts: Parts, rows: Iterator[pa.Table], space: Space) -> Orderings:
        """Return what is stored."""
        ordered = {}
        for stream, lateness_us, idle_us, queue, newest_us, heard_us, *times in head[ORDERINGS]:
            name = _name(one := Ordering(stream, lateness_us, idle_us))
            ordered[one] = Ordered(
                ReportQueue.of_head(waiting_schema(space), f"held-{name}", queue, parts),
                table_of(f"last-{name}", no_last(), head, parts),
                Progress(newest_us, heard_us),
                *times,
            )
        return Orderings(ordered, head[TURN])

    def divided(self, found: Sequence[Orderings], partitions: int) -> Sequence[Orderings]:
        """Return the orderings of other home servers."""
        return list(ordering.divided(found, partitions))


def step(turn: HomeTurn) -> Orderings | None:
    """Release the reports that are due, and say how far they are; None if no query needs them in order.

    The reports have `ordering.released_schema`.
    """
    if not turn.control.after.orderings:
        return None
    was = turn.home.parts.get(ORDERINGS) or Orderings()
    if turn.rescaled:
        was = ordering.everywhere(was)
    orderings, released = ordering.step(was, turn.elements, turn.control, turn.now_us, turn.following)
    turn.send(RELEASED, released.reports, released.region)
    turn.head_of_all[ORDERINGS] = [[*name, *known.progress] for name, known in orderings.ordered.items()]
    turn.head_of_all[TURN] = orderings.turn
    turn.head[LATE] = [[*name, *late] for name, late in released.late.items()]
    return orderings


def _name(one: Ordering) -> str:
    """Return the name of an ordering in the names of parts, which have no minus signs of numbers."""
    return f"{one.stream % 2**64:x}-{one.lateness_us}-{one.idle_us}"

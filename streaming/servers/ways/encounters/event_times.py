"""How event time goes on for encounters: all regions and the assembler compute the same."""

from collections.abc import ItemsView, Mapping, Sequence
from dataclasses import dataclass, field

from streaming.operators.encounters import Encounter, Ordering
from streaming.operators.watermarks import LONG_AGO_US, Progress, complete_until
from streaming.servers.control.step import ControlStep
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


@dataclass(frozen=True)
class EncounterClock:
    """How far a query for encounters is.

    Parameters
    ----------
    since : int
        The turn of the home servers from which on reports count: when the query was registered.
    since_us : int
        When that was, by the engine's clock.
    until_us : int
        The watermark: encounters are known up to before this event time.
    """

    since: int
    since_us: int
    until_us: int = LONG_AGO_US


@dataclass(frozen=True)
class EventTimeAdvance:
    """How far event time goes on for a query in a batch.

    Parameters
    ----------
    since : int
        As in `EncounterClock`.
    from_us, until_us : int
        The watermarks before and after the batch.
    is_new : bool
        Whether the query begins now.
    """

    since: int
    from_us: int
    until_us: int
    is_new: bool


@dataclass(frozen=True)
class EventTimes:
    """What decides how event time goes on in a batch.

    Parameters
    ----------
    clocks : mapping of int to EncounterClock
        By query, how far the assembler was before the batch. A query that it left out begins anew.
    homes : sequence of mapping
        How far each home server is with each ordering after the batch.
    turn : int
        The turn of the home servers.
    """

    clocks: Mapping[int, EncounterClock] = field(default_factory=dict)
    homes: Sequence[Mapping[Ordering, Progress]] = ()
    turn: int = 0

    def advanced(self, control: ControlStep) -> dict[int, EncounterClock]:
        """Return how far each query is after the batch."""
        return {query: self._advanced(query, encounter, control) for query, encounter in self._queries(control)}

    def advances(self, control: ControlStep) -> dict[int, EventTimeAdvance]:
        """Return how far event time goes on for each query."""
        advances = {}
        for query, encounter in self._queries(control):
            known, clock = self._known(query, control), self._advanced(query, encounter, control)
            from_us = known.until_us if known else LONG_AGO_US
            advances[query] = EventTimeAdvance(clock.since, from_us, clock.until_us, known is None)
        return advances

    def _queries(self, control: ControlStep) -> ItemsView[int, Encounter]:
        return control.after.encounters.items()

    def _known(self, query: int, control: ControlStep) -> EncounterClock | None:
        return None if query in control.applied.changed else self.clocks.get(query)

    def _advanced(self, query: int, encounter: Encounter, control: ControlStep) -> EncounterClock:
        known = self._known(query, control) or EncounterClock(self.turn, control.now_us)
        complete_us = complete_until(self.homes, encounter.orderings, known.since_us, control.now_us, encounter.idle_us)
        until_us = max(known.until_us, complete_us - encounter.lateness_us)
        return EncounterClock(known.since, known.since_us, until_us)


def renewed(encounter: Encounter, control: ControlStep) -> bool:
    """Tell whether all pairs of a query must be found again, because of another region map or edited features."""
    return control.before.region_map != control.after.region_map or encounter.layer in control.applied.edited


def is_dropped(encounter: Encounter, control: ControlStep) -> bool:
    """Tell whether one of the streams of a query was dropped."""
    return any(stream in control.applied.dropped for stream in (encounter.stream, encounter.partner_stream))


def _encode(clocks: Mapping[int, EncounterClock]) -> Parts:
    rows = [[query, clock.since, clock.since_us, clock.until_us] for query, clock in clocks.items()]
    return {HEAD: Tables([with_head(NOTHING, {"clocks": rows})])}


def _decode(parts: Parts) -> dict[int, EncounterClock]:
    (table,) = parts[HEAD].tables()
    return {query: EncounterClock(*told) for query, *told in head_of(table)["clocks"]}


CLOCKS: Codec = Codec(lambda batch: {}, _encode, _decode)

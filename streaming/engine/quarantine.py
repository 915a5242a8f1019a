"""The quarantine: queries that are not evaluated any more, since a step with them did not end.

A batch that runs again must do what it did before, and what regions have told of it cannot change. Up to where a batch
reads was decided before it ran, so an entry of the control log would come too late for it. So the quarantine is a file
beside the states, which an engine reads when it starts, and which changes only while none evaluates:

1. The watchdog sees that a step does not end. It writes what the process had named (`Quarantine.noticed`), and ends the
   engine. It does not say who is to blame unless the step was run for one answer alone: many queries are evaluated
   together, and a slow machine may be the reason.
2. The next engine, which alone has the lease, decides from which batch on each server leaves a query out: from the one
   in which the step did not end, but never in one that this server has told already (`Quarantine.settled`).
3. When the batch runs again, the server probes the step for parts of the queries; see `control.border`. Either a
   part does not end, and the next engine probes its queries alone, until one answer is found; or all of them end,
   and the step runs for everybody, with twice the time each time that it is ended. So a query is blamed if and only if
   the step does not end for its answer alone, while it ends for no query. A machine that is only slow gets on.

A step that ends its process, again and again, is treated as one that does not end: a filter may do so, or need more
memory than there is.

A part is about a hundredth of the suspects. So with *n* answers, log(n) / log(100) + 2 engines are ended at most.

A query stays in quarantine in this revision. It may leave the file when no state that is kept has it any more.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import orjson

from streaming.engine.slots import NamedStep, Slot
from streaming.language import gettext_noop, thousands
from streaming.servers.control.watched import Watched
from streaming.state.stores import StateStore

logger = logging.getLogger("lookout.engine")

FILE = "quarantine.json"
WHY = gettext_noop(
    "its evaluation did not end within %(seconds)s s and held all others up, so it is not evaluated any more; make its "
    "area, its filters or its join simpler to try it again"
)
FATAL = gettext_noop(
    "its evaluation ended the process of the engine again and again, so it is not evaluated any more; make its filters "
    "or its join simpler to try it again"
)


def home_place(partition: int) -> int:
    """Return the place of a home server; that of a region is its number, and that of the assembler `MOST_REGIONS`."""
    return -1 - partition


@dataclass(frozen=True)
class Quarantined:
    """A revision of a query in quarantine.

    Parameters
    ----------
    query, revision : int
    batch, place : int
        In which batch, and at which place, its evaluation did not end.
    limit_s : float
        Within how many seconds.
    fatal : bool
        Whether the process ended instead.
    later : mapping of int to int, optional
        The first batch that leaves it out, for each place at which this is a later one. None while it is not settled.
    """

    query: int
    revision: int
    batch: int
    place: int
    limit_s: float
    fatal: bool = False
    later: Mapping[int, int] | None = None

    @property
    def why(self) -> str:
        """What its owner is told."""
        return FATAL if self.fatal else WHY % {"seconds": thousands(round(self.limit_s))}

    def is_out(self, place: int, batch: int) -> bool:
        """Tell whether the server at a place leaves the query out in a batch."""
        return batch >= (self.later or {}).get(place, self.batch)

    @property
    def everywhere(self) -> int:
        """The first batch in which every server leaves it out."""
        return max([self.batch, *(self.later or {}).values()])


@dataclass(frozen=True)
class Suspicion:
    """A step that did not end.

    Parameters
    ----------
    batch, place : int
    limit_s : float
        How much time each step has in this batch at this place.
    queries : tuple of int
        The queries of which one is the reason; empty if it may be any, or none.
    """

    batch: int
    place: int
    limit_s: float
    queries: tuple[int, ...] = ()


@dataclass(frozen=True)
class Quarantine:
    """The quarantine of an engine.

    Parameters
    ----------
    epoch : str
        Of the state to whose batches it refers.
    queries : tuple of Quarantined
    suspicions : tuple of Suspicion
        One for a batch and a place.
    """

    epoch: str = ""
    queries: tuple[Quarantined, ...] = ()
    suspicions: tuple[Suspicion, ...] = ()

    def watched(self, place: int, batch: int, slot: Slot | None) -> Watched:
        """Return how the steps of a server in a batch are watched, given the slot of the process, if it has one."""
        out = {(one.query, one.revision): one.why for one in self.queries if one.is_out(place, batch)}
        suspicion = self.suspicion(batch, place)
        known = out, suspicion is not None, frozenset(suspicion.queries if suspicion else ())
        return Watched(*known, partial(slot.begin, batch, place), slot.end) if slot else Watched(*known)

    def suspicion(self, batch: int, place: int) -> Suspicion | None:
        """Return what is known of a step that did not end in a batch at a place; None if nothing is."""
        return next((one for one in self.suspicions if (one.batch, one.place) == (batch, place)), None)

    def noticed(self, step: NamedStep, limit_s: float) -> "Quarantine":
        """Return the quarantine after a step that did not end, where `limit_s` is the time that a step has at first."""
        known = self.suspicion(step.batch, step.place)
        now, queries = known or Suspicion(step.batch, step.place, limit_s), self.queries
        if step.answers == 1:
            asked = step.batch, step.place, now.limit_s, step.fatal
            queries += tuple(Quarantined(query, revision, *asked) for query, revision in step.queries)
            now = replace(now, queries=())
        elif step.answers and step.whole:
            now = replace(now, queries=tuple(sorted({query for query, _ in step.queries})))
        elif known and not (step.answers or step.fatal):  # it ends for each answer alone, or for none at all
            now = replace(now, limit_s=2 * known.limit_s, queries=())
        return replace(self, queries=queries, suspicions=(*(one for one in self.suspicions if one != known), now))

    def settled(self, epoch: str, after: int, told: Mapping[int, int], partitions: int) -> "Quarantine":
        """Return the quarantine for an engine that starts.

        Parameters
        ----------
        epoch : str
            Of its state. In another one than that of the quarantine, queries are left out from the first batch on.
        after : int
            The batch after which it continues.
        told : mapping of int to int
            The newest batch that each region, and the assembler, has told.
        partitions : int
            How many home servers there are. What these send has been told as soon as one region has.
        """
        if epoch != self.epoch:
            return Quarantine(epoch, tuple(replace(one, batch=0, later={}) for one in self.queries))
        homes = dict.fromkeys(map(home_place, range(partitions)), max(told.values(), default=-1))

        def later(one: Quarantined) -> Mapping[int, int]:
            first = {place: batch + 1 for place, batch in {**told, **homes}.items() if batch >= one.batch}
            return {place: batch for place, batch in first.items() if place != one.place}

        queries = (one if one.later is not None else replace(one, later=later(one)) for one in self.queries)
        return Quarantine(epoch, tuple(queries), tuple(one for one in self.suspicions if one.batch > after))

    def without(self, oldest: int, revision: Callable[[int], int | None]) -> "Quarantine":
        """Return the quarantine without what the oldest state that is kept does not need.

        Parameters
        ----------
        oldest : int
            The batch that left that state.
        revision : callable
            Returns in which revision a query runs in it, None if it does not run.
        """
        needed = (one for one in self.queries if one.everywhere > oldest or revision(one.query) == one.revision)
        return replace(self, queries=tuple(needed))


def read_quarantine(files: StateStore) -> Quarantine:
    """Return the quarantine that is stored; one of nobody if none is."""
    try:
        told = orjson.loads(files.get(FILE).to_pybytes())
        queries = map(_quarantined, told["queries"])
        suspicions = (Suspicion(**one | {"queries": tuple(one["queries"])}) for one in told["suspicions"])
        return Quarantine(told["epoch"], tuple(queries), tuple(suspicions))
    except FileNotFoundError:
        return Quarantine()
    except (ValueError, KeyError, TypeError) as error:
        logger.error("the quarantine cannot be read, so its queries are evaluated again: %s", error)
        return Quarantine()


def _quarantined(document: Mapping[str, Any]) -> Quarantined:
    later = document["later"]
    return Quarantined(**{**document, "later": later and {int(place): batch for place, batch in later.items()}})


def write_quarantine(files: StateStore, quarantine: Quarantine) -> None:
    """Store the quarantine; it is durable afterwards."""
    files.put(FILE, orjson.dumps(asdict(quarantine), option=orjson.OPT_NON_STR_KEYS))
    files.sync([FILE])

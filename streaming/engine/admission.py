"""How many control entries a batch reads: so many that they take it about a tenth of a second at most.

All answers wait for the batch. So the coordinator estimates what each entry will cost, and leaves to the next batches
what is too much for this one. Entries keep their order, and the decision is a part of the cut. So it never changes what
a query's first answer is, only in which batch it comes, and whoever runs the batch again reads the same entries.

The cost of a first answer grows with its members. Their number is estimated from a sample of elements, as databases
estimate how many rows a condition selects. No answer is divided, because a first answer and a snapshot belong to one
batch. So a batch reads at least one entry, whatever its cost.

References
----------
R. J. Lipton, J. F. Naughton, D. A. Schneider, "Practical Selectivity Estimation through Adaptive Sampling", SIGMOD
1990.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from streaming.elements import stream_number
from streaming.kinds.areas import AreaFilter, CorridorArea
from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of, moved
from streaming.operators.boxes import box_array, intersects
from streaming.operators.places import middles, within_boxes
from streaming.servers.control.entries import ControlEntries
from streaming.servers.control.registrations import ParsedPlan
from streaming.servers.control.registry import Registry
from streaming.spaces import Space

# What the control entries of a batch may take, in seconds of processor time; what one takes, and what each member of a
# first answer or a snapshot adds: measured by `bench.bulk`, with all servers in one process.
BUDGET_S = 0.1
ENTRY_S, REGISTER_S, MEMBER_S = 5e-6, 80e-6, 6e-6
# What each vertex of a corridor adds to that: once, and for each member.
VERTEX_S, MEMBER_VERTEX_S = 1e-6, 1.5e-8
# Entries that the coordinator looks at for one batch.
MOST_ENTRIES = 2_500
# The elements of a sample, and the pairs of an element and a plan that are compared at most for an estimate.
SAMPLED, MOST_PAIRS = 1_024, 100_000


@dataclass(frozen=True)
class Sample:
    """Elements that came lately, the newest first.

    Parameters
    ----------
    stream : ndarray of int64, shape (N,)
    bounds : ndarray of float64, shape (N, 2n)
    """

    stream: np.ndarray
    bounds: np.ndarray

    @classmethod
    def none(cls, space: Space) -> "Sample":
        """Return no elements."""
        return cls(np.empty(0, dtype=np.int64), np.empty((0, 2 * space.n)))

    def __len__(self) -> int:
        return len(self.stream)

    def after(self, stream: np.ndarray, bounds: np.ndarray) -> "Sample":
        """Return the sample after more elements came, at most `SAMPLED`."""
        step = max(1, len(stream) // (SAMPLED // 4))
        both = np.r_[stream[::step], self.stream], np.r_[bounds[::step], self.bounds]
        return Sample(*(column[:SAMPLED] for column in both))

    def thinned(self, count: int) -> "Sample":
        """Return about so many of the elements, at least one if there is one."""
        step = max(1, len(self) // max(1, count))
        return Sample(self.stream[::step], self.bounds[::step])


def admitted(entries: ControlEntries, registry: Registry, sample: Sample, objects: int) -> int:
    """Return how many of the next control entries a batch reads; at least one.

    Parameters
    ----------
    entries : ControlEntries
        At least one.
    registry : Registry
        Before the entries.
    sample : Sample
        Elements that came lately; without any, first answers count as empty.
    objects : int
        How many objects the engine has.
    """
    if len(entries) == 1:
        return 1
    seconds = np.full(len(entries), ENTRY_S)
    seconds[list(entries.plans)] = REGISTER_S
    asked = _answering(entries, registry)
    if asked:
        rows, plans, were = zip(*asked, strict=True)
        vertices = np.array([_vertices(plan) for plan in plans])
        members = objects * shares(plans, sample, registry.space, were)
        np.add.at(seconds, list(rows), VERTEX_S * vertices + (MEMBER_S + MEMBER_VERTEX_S * vertices) * members)
    return max(1, int(np.searchsorted(np.cumsum(seconds), BUDGET_S, "right")))


def most_next(count: int) -> int:
    """Return how many entries to look at for the next batch, given how many this one reads.

    What is not admitted is read and parsed again, so it should be little.
    """
    return min(MOST_ENTRIES, 100 + 2 * count)


def _answering(entries: ControlEntries, registry: Registry) -> list[tuple[int, Plan, Plan | None]]:
    """Return the plans whose answers entries ask for: the position of the entry, the plan, and the one before or None.

    There is one before if only its boxes have moved. A rule asks for the answers of the queries that it names.
    """
    answering: list[tuple[int, Plan, Plan | None]] = []
    plan_of = {number: plan.plan for number, plan in _parsed(entries)}
    for row, entry in enumerate(entries.entries):
        parsed, was = entries.plans.get(row), _known(registry, entry.get("query"))
        if parsed is not None and not isinstance(parsed, Exception):
            plan = parsed.plan
            if named := kind_of(plan).queries(plan):
                known = (plan_of.get(query) or _known(registry, query) for query in named)
                answering += [(row, other, None) for other in known if other]
            else:
                answering.append((row, plan, was if was and moved(was, plan) is not None else None))
        elif entry.get("op") == "snapshot" and was:
            answering.append((row, was, None))
    return answering


def _vertices(plan: Plan) -> int:
    """Return how many vertices the lines of a plan's corridors have."""
    shapes = (entry.shape for entry in plan.filters if isinstance(entry, AreaFilter))
    return sum(len(shape.line) for shape in shapes if isinstance(shape, CorridorArea))


def _parsed(entries: ControlEntries) -> Iterator[tuple[int, ParsedPlan]]:
    """Yield the numbers and the parsed plans of the queries that entries register."""
    for row, parsed in entries.plans.items():
        if not isinstance(parsed, Exception):
            yield entries.entries[row]["query"], parsed


def _known(registry: Registry, query: int | None) -> Plan | None:
    """Return the plan of a query as the registry has it; None if it does not run."""
    told = registry.registrations.get(query) if query is not None else None
    return told.plan if told is not None else None


def shares(
    plans: Sequence[Plan], sample: Sample, space: Space, were: Sequence[Plan | None] | None = None
) -> np.ndarray:
    """Estimate which part of all elements each plan's answer has: float64 of shape (Q,), 0 to 1.

    Filters are not evaluated. A query that moves is taken to be at some element of the sample.

    Parameters
    ----------
    plans : sequence of Plan, length Q
    sample : Sample
    space : Space
    were : sequence of Plan or None, length Q, optional
        Where there is a plan, estimate which part is in either answer, but not in both.
    """
    sample = sample.thinned(MOST_PAIRS // len(plans))
    if not len(sample):
        return np.zeros(len(plans))
    met = _met(plans, sample, space)
    earlier = {row: was for row, was in enumerate(were or ()) if was is not None}
    if earlier:
        met[list(earlier)] ^= _met(list(earlier.values()), sample, space)
    return met.mean(axis=1)


def _met(plans: Sequence[Plan], sample: Sample, space: Space) -> np.ndarray:
    """Tell which elements of a sample plans may select, bool of shape (Q, N)."""
    kinds = [kind_of(plan) for plan in plans]
    boxes = box_array([kind.box(plan) for kind, plan in zip(kinds, plans, strict=True)], space)
    reach = np.array([kind.reach(plan) for kind, plan in zip(kinds, plans, strict=True)])
    boxes = _about(boxes, reach, sample, space)
    numbers = {plan.stream: stream_number(plan.stream) for plan in plans}
    stream = np.array([numbers[plan.stream] for plan in plans])
    query, row = (part.ravel() for part in np.indices((len(plans), len(sample))))
    meets = (stream[query] == sample.stream[row]) & intersects(sample.bounds, row, boxes, query, space)
    return meets.reshape(len(plans), len(sample))


def _about(boxes: np.ndarray, reach: np.ndarray, sample: Sample, space: Space) -> np.ndarray:
    """Return boxes, those with a reach about places of the sample instead; these are not cut to their areas."""
    moving = np.flatnonzero(np.isfinite(reach))
    if not len(moving):
        return boxes
    places = middles(sample.bounds[moving % len(sample)], space)[:, :2]
    plane = within_boxes(places, reach[moving], space)
    boxes = boxes.copy()
    for axis in range(min(2, space.n)):
        boxes[moving, axis], boxes[moving, space.n + axis] = plane[:, axis], plane[:, 2 + axis]
    return boxes

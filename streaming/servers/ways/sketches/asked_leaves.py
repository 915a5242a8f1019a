"""What a region sends to the assembler for queries of sketches: the leaves that their questions need.

References
----------
Synopsis (2017), section 3.5: sketchlets evaluate a query on their parts of the sketch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from streaming.elements import stream_number
from streaming.language import gettext
from streaming.operators.failures import Failures
from streaming.servers.control.border import QueriesFailed
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.ways.sketches.pacing import SketchPace
from streaming.servers.ways.sketches.region import Sketchlet
from streaming.sketch.asking.answering import checked
from streaming.sketch.asking.needs import Need, Partial, asked_parts
from streaming.sketch.settings import InvalidSketch
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


@dataclass(frozen=True)
class AskedLeaves:
    """What a region sends to the assembler.

    Parameters
    ----------
    leaves : mapping of int to mapping of Need to list of pyarrow.Table
        By query.
    lacking : frozenset of int
        The queries that the region leaves out.
    looked : mapping of int to int
        How many leaves it took, by query; see `needs.asked_parts`.
    seconds : mapping of int to float
        How long it took to find them, by query; no state.
    """

    leaves: Mapping[int, Mapping[Need, Partial]] = field(default_factory=dict)
    lacking: frozenset[int] = frozenset()
    looked: Mapping[int, int] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)


def due(control: ControlStep, pace: SketchPace) -> list[int]:
    """Return the queries of sketches that are answered in a micro-batch.

    These are the new and the edited ones, and at each tick those whose turn it is and that are not to be answered once.
    All servers must get the control step with the queries that some of them leave out, so that all find the same.
    """
    turns = pace.due(ticking(control), control.now_us) if control.applied.now_us else set()
    turns.update(control.applied.changed.tolist())
    return [query for query in control.after.sketch_plans if query in turns]


def ticking(control: ControlStep) -> list[int]:
    """Return the queries of sketches that are answered again and again."""
    return [query for query, plan in control.after.sketch_plans.items() if not plan.once]


def concern_sketches(before: Registry, after: Registry, applied: Applied) -> bool:
    """Tell whether the assembler has to say something about queries of sketches in a micro-batch."""
    plans = before.sketch_plans.keys() | after.sketch_plans.keys()
    if not plans:
        return False
    touched = {*applied.changed.tolist(), *applied.cancelled.tolist(), *applied.snapshots}
    return bool(applied.now_us) or not plans.isdisjoint(touched)


def step(sketchlet: Sketchlet, asked: Sequence[int], control: ControlStep) -> AskedLeaves:
    """Find the leaves of a region that the questions which are due need.

    Parameters
    ----------
    sketchlet : Sketchlet
    asked : sequence of int
        The queries that are `due`. Those that the control step does not know are left out.
    control : ControlStep

    Raises
    ------
    QueriesFailed
        If a question asks for what the sketch does not keep, or the stream is not sketched.
    """
    found, failed, looked, costs = {}, {}, {}, Failures()
    for query in asked:
        if query not in control.after.sketch_plans:
            continue
        plan, began = control.after.sketch_plans[query], perf_counter()
        number = stream_number(plan.stream)
        sketch = sketchlet.sketches.get(number)
        if sketch is None:
            failed[query] = gettext("the stream %(stream)s is not sketched: switch its sketch on in the admin") % {
                "stream": plan.stream
            }
            continue
        try:
            checked(plan, control.after.sketched[number])
            found[query], looked[query] = asked_parts(plan, sketch, sketchlet.sets.get(number), control.now_us)
        except InvalidSketch as error:
            failed[query] = str(error)
        costs.charge(np.array([query]), np.array([perf_counter() - began]))
    if failed:
        raise QueriesFailed(failed)
    return AskedLeaves(found, looked=looked, seconds=costs.seconds)


def _encoded(state: AskedLeaves) -> Parts:
    head: list[list[Any]] = []
    tables: list[pa.Table] = []
    for query, needed in state.leaves.items():
        for need, partial in needed.items():
            head.append([query, [*need], len(partial)])
            tables += partial
    return {
        HEAD: Tables(
            [
                with_head(NOTHING, {"rows": head, "lacking": sorted(state.lacking), "looked": [*state.looked.items()]}),
                *tables,
            ]
        )
    }


def _decoded(parts_: Parts) -> AskedLeaves:
    first, *tables = parts_[HEAD].tables()
    head = head_of(first)
    found: dict[int, dict[Need, Partial]] = {}
    for query, names, many in head["rows"]:
        found.setdefault(query, {})[Need(*names)], tables = tables[:many], tables[many:]
    return AskedLeaves(found, frozenset(head["lacking"]), dict(head["looked"]))


ASKED_LEAVES = Codec(lambda batch: AskedLeaves(), _encoded, _decoded)

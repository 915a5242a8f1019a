"""The queries of which rules look at every report of an object, and not only at the newest of a micro-batch."""

import numpy as np

from streaming.elements import stream_number
from streaming.operators.runs import find
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep


def stepping(registry: Registry) -> np.ndarray:
    """Return the numbers of the queries that rules watch and in whose answers objects are by their own reports alone.

    Regions compute these answers by themselves. They are int64, ascending.
    """
    place, runs = find(registry.columns.query, registry.watched)
    place = place[runs]
    return registry.columns.query[place[find(registry.answers, registry.columns.answer[place])[1]]]


def streams_of_steps(registry: Registry) -> np.ndarray:
    """Return the numbers of the streams of these queries, int64, each once."""
    streams = {registry.plan(query).stream for query in stepping(registry).tolist()}
    return np.array(sorted(map(stream_number, streams)), dtype=np.int64)


def stepped(control: ControlStep) -> np.ndarray:
    """Return the numbers of the queries whose steps are told in a micro-batch, int64, ascending: those that stay."""
    stays = np.intersect1d(stepping(control.before), stepping(control.after))
    return np.setdiff1d(stays, control.applied.changed)

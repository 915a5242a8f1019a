"""Rules in a home server: the steps of objects that reported several times, and silences that reports ended."""

import numpy as np
import pyarrow as pa

from streaming.operators.runs import first_of_runs, last_of_runs
from streaming.servers.home_turn import HomeTurn
from streaming.servers.ways.rules.home_silences import heard_streams
from streaming.servers.ways.rules.stepping import streams_of_steps

STEPS, SILENCES, HEARD = "steps", "silences", "spells"


def step(turn: HomeTurn) -> None:
    """Send the steps of objects to the regions where they lie, and what is heard of silences to the first region.

    The steps have `elements.tracked_schema`, and the silences `home_silences.SILENCES`.
    """
    rows, control = turn.accepted.rows, turn.control
    steps = _steps(turn.elements, rows, streams_of_steps(control.after))
    turn.route(STEPS, turn.elements, steps, turn.accepted.place[steps])
    heard = heard_streams(turn.elements, rows, turn.accepted.known, control)
    turn.send(SILENCES, heard.silences, np.zeros(heard.silences.num_rows, dtype=np.int64))
    turn.head[HEARD] = heard.spells


def _steps(elements: pa.Table, rows: np.ndarray, streams: np.ndarray) -> np.ndarray:
    """Return those of some rows, ordered by key and arrival, that are steps of objects in streams, ascending ones.

    They are the accepted elements of objects with several ones that were heard at different moments, the newest of each
    moment.
    """
    if not len(streams):
        return rows[:0]
    key, heard_us, stream = (elements[name].to_numpy()[rows] for name in ("key_hash", "heard_us", "stream"))
    newest = np.union1d(last_of_runs(key), last_of_runs(heard_us))
    rows, key = rows[newest], key[newest]
    first = first_of_runs(key)
    several = ~(first & np.r_[first[1:], np.ones(min(1, len(first)), dtype=bool)])
    return rows[several & np.isin(stream[newest], streams)]

"""How a sketch is stored: each run of leaves as a part of its own, and everything else in the head."""

import numpy as np
import pyarrow as pa

from streaming.sketch.bins import Bins
from streaming.sketch.leaves import Leaves
from streaming.sketch.observations import Observations
from streaming.sketch.runs import LeafRun
from streaming.sketch.settings import SketchSettings, parse_settings, settings_document
from streaming.sketch.sketch import Sketch
from streaming.spaces import Space
from streaming.state.codec import HEAD, Part, Parts, Tables, head_of, with_head

_NUMBERS = ("following", "newest_us", "coarseness", "count", "unplaced", "since")


def encode(sketch: Sketch, name: str = "leaves") -> dict[str, Part]:
    """Return the parts of a sketch: its head, and a part for each run.

    Parameters
    ----------
    sketch : Sketch
    name : str
        With which the names of the runs' parts begin. The name and the number of a run never stand for another run.
    """
    head = {
        "settings": settings_document(sketch.settings),
        "bins": None if sketch.bins is None else _bins_document(sketch.bins),
        "runs": [run.number for run in sketch.runs],
    } | {field: getattr(sketch, field) for field in _NUMBERS}
    return {HEAD: Tables([with_head(_waiting_table(sketch), head)])} | {
        f"{name}-{run.number}": run for run in sketch.runs
    }


def decode(parts: Parts, space: Space, name: str = "leaves") -> Sketch:
    """Return the sketch of parts; the inverse of `encode`. Runs that are in memory are the very ones that are given."""
    (table,) = parts[HEAD].tables()
    head = head_of(table)
    settings = parse_settings(head["settings"], space)

    def run(number):
        part = parts[f"{name}-{number}"]
        return part if isinstance(part, LeafRun) else _run(number, part.tables(), settings)

    return Sketch(
        settings,
        None if head["bins"] is None else _bins(head["bins"]),
        _waiting(table, settings),
        tuple(map(run, head["runs"])),
        **{field: head[field] for field in _NUMBERS},
    )


def _run(number, tables, settings):
    (table,) = tables
    return LeafRun(number, Leaves.of_table(table, len(settings.features), len(settings.pairs)), settings.pairs)


def _waiting_table(sketch):
    if not sketch.waiting:
        return pa.table({})
    waiting = Observations.together(sketch.waiting)
    columns = {"time_us": waiting.time_us, "place_0": waiting.place[0], "place_1": waiting.place[1]}
    columns |= {f"value_{place}": column for place, column in enumerate(waiting.values)}
    return pa.table({name: np.ascontiguousarray(column) for name, column in columns.items()})


def _waiting(table, settings: SketchSettings):
    if not table.num_columns:
        return ()
    place = np.stack([np.array(table[f"place_{axis}"]) for axis in range(2)])
    values = np.stack([np.array(table[f"value_{feature}"]) for feature in range(len(settings.features))])
    return (Observations(np.array(table["time_us"]), place, values),)


def _bins_document(bins):
    return {"edges": [edges.tolist() for edges in bins.edges], "order": list(bins.order), "kept": list(bins.kept)}


def _bins(document):
    edges = tuple(np.array(edges, dtype=np.float64) for edges in document["edges"])
    return Bins(edges, tuple(document["order"]), tuple(document.get("kept", ())))

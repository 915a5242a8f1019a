"""What a region sends about its part of a selection, so that one server answers for all regions.

Leaves that match as a whole are merged: into two at most, or into some more that tell the values of a feature apart.
Leaves that are cut stay as they are, with what is known of their parts. So a partial is small, and the partials of all
regions together answer as the whole sketch does.
"""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
import pyarrow as pa

from streaming.sketch.chosen import NO_CUT, ChosenLeaves, ChosenPart, CutLeaves, choose, chosen_together, nothing_of
from streaming.sketch.leaves import Leaves, no_leaves, together
from streaming.sketch.runs import LeafRun
from streaming.sketch.selection import EVERYTHING, Selection
from streaming.sketch.settings import SketchSettings
from streaming.sketch.sketch import Sketch


def condensed(chosen: ChosenLeaves, feature: str | None = None) -> ChosenLeaves:
    """Return a choice of few leaves that answers as the given one does.

    Parameters
    ----------
    chosen : ChosenLeaves
    feature : str or None
        A feature whose distribution will be asked for.
    """
    position = None if feature is None else chosen.settings.position(feature)
    whole, cut = (chosen if feature is None else chosen.by_value(feature)).taken()
    run = LeafRun(0, whole, chosen.settings.pairs)
    if len(whole):
        whole = run.whole if position is None else run.by_value(position)
    return _of_leaves(whole, cut, chosen.cut if feature is None else chosen.by_value(feature).cut, chosen)


def by_cell(sketch: Sketch, selection: Selection, level: int) -> tuple[ChosenLeaves, int]:
    """Return a choice of few leaves that answers for each cell as all chosen leaves do, and how many it is made of.

    Parameters
    ----------
    sketch : Sketch
    selection : Selection
    level : int
        The number of bits of the cells, at the most.
    """
    settings, chosen = sketch.settings, choose(sketch, selection, merge=False)
    if selection == EVERYTHING:  # what is computed of all leaves of a run is kept with the run
        rolled, cut = [run.by_cell_of(level, settings) for run in sketch.asked], no_leaves(settings)
    else:
        whole, cut = chosen.taken()
        rolled = [whole]
    merged = LeafRun(0, together([no_leaves(settings), *rolled]), settings.pairs)
    few = merged.by_cell_of(level, settings) if len(merged) else merged.leaves
    return _of_leaves(few, cut, chosen.cut, chosen), len(merged) + len(cut)


def partial_tables(chosen: ChosenLeaves) -> list[pa.Table]:
    """Return a choice as tables: the leaves that match as a whole; those that are cut, with what is known of them."""
    whole, cut = chosen.taken()
    known = {f"cut_{field.name}": getattr(chosen.cut, field.name) for field in fields(CutLeaves)}
    table = cut.table()
    for name, column in known.items():
        table = table.append_column(name, pa.array(column))
    return [whole.table(), table]


def chosen_of(partials: Sequence[Sequence[pa.Table]], settings: SketchSettings, selection: Selection) -> ChosenLeaves:
    """Return the choice that the tables of `partial_tables` of some regions make together; at least one region."""
    sizes = len(settings.features), len(settings.pairs)
    parts = []
    for whole, cut in partials:
        known = CutLeaves(*(np.array(cut[f"cut_{field.name}"]) for field in fields(CutLeaves)))
        leaves, halves = (Leaves.of_table(table, *sizes) for table in (whole, cut))
        parts.append(_of_leaves(leaves, halves, known, ChosenLeaves(settings, selection, ())))
    return chosen_together(parts)


def _of_leaves(whole: Leaves, cut: Leaves, known: CutLeaves, chosen: ChosenLeaves) -> ChosenLeaves:
    none = np.empty(0, dtype=np.int64)
    parts = [ChosenPart(whole, slice(0, len(whole)), none, NO_CUT)] if len(whole) else []
    if len(cut):
        parts.append(ChosenPart(cut, slice(0, 0), np.arange(len(cut)), known))
    return ChosenLeaves(chosen.settings, chosen.selection, tuple(parts) or nothing_of(chosen.settings))

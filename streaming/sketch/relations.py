"""Relational questions: the part of a sketch that a selection chooses is a sketch, and is asked again.

References
----------
Synopsis (2017), section 3.6.1.
"""

import functools
from dataclasses import dataclass, replace

from streaming.sketch.chosen import ChosenLeaves, choose
from streaming.sketch.leaves import Leaves, order_of
from streaming.sketch.runs import LeafRun
from streaming.sketch.selection import EVERYTHING, Selection
from streaming.sketch.sketch import Sketch


@dataclass(frozen=True)
class SubSketch:
    """The part of a sketch that a selection chooses.

    Parameters
    ----------
    chosen : ChosenLeaves
        The leaves, as positions in those of the whole sketch.
    whole : Sketch
    """

    chosen: ChosenLeaves
    whole: Sketch

    @functools.cached_property
    def sketch(self) -> Sketch:
        """The chosen leaves as a sketch. Leaves that the selection cuts are in it as a whole; ask with `choose`."""
        pairs = self.whole.settings.pairs
        leaves = [taken for taken in self.chosen.taken() if len(taken)]
        runs = tuple(LeafRun(number, taken, pairs) for number, taken in enumerate(map(_ordered, leaves)))
        count = sum(int(taken.count.sum()) for taken in leaves)
        return replace(self.whole, runs=runs, waiting=(), following=len(runs), count=count, unplaced=0)

    def choose(self, selection: Selection = EVERYTHING) -> ChosenLeaves:
        """Return what another selection chooses of this part; both hold."""
        return choose(self.sketch, self.chosen.selection & selection)

    def relate(self, selection: Selection) -> "SubSketch":
        """Return the part of this part that another selection chooses; both hold."""
        return relate(self.sketch, self.chosen.selection & selection)


def relate(sketch: Sketch, selection: Selection) -> SubSketch:
    """Return the part of a sketch that a selection chooses. No leaf is copied until its columns are asked for.

    Raises
    ------
    InvalidSketch
        If an area is not valid, or a feature is not sketched.
    """
    return SubSketch(choose(sketch, selection, merge=False), sketch)


def _ordered(leaves: Leaves) -> Leaves:
    """Return leaves in the order of runs."""
    return leaves.take(order_of(leaves))

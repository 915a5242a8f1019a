"""A question of a plan, with the leaves and sets that answer it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming.kinds.sketch.plan import SketchPlan
from streaming.sketch.asking.needs import Need, selection_of
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.sets.coverage import coverage_of
from streaming.sketch.sets.questions import ChosenEntries
from streaming.sketch.sets.questions import chosen as chosen_entries
from streaming.sketch.sets.sets import Sets
from streaming.sketch.settings import SketchSettings


@dataclass(frozen=True)
class Question:
    """A question of a plan, and the leaves that answer it."""

    ask: Any
    plan: SketchPlan
    settings: SketchSettings
    chosen: Mapping[Need, ChosenLeaves]
    sets: Sets | None
    now_us: int

    @property
    def confidence(self) -> float:
        """How probable it is that the truth lies within the bounds."""
        return self.plan.confidence

    @property
    def kept(self) -> Sets:
        """The sets, of a question to them."""
        assert self.sets is not None  # `parts` refuses questions to sets where there are none
        return self.sets

    @property
    def entries(self) -> ChosenEntries:
        """The entries of sets of the one feature that is asked about."""
        return self.entries_of(self.ask.features[0])

    def entries_of(self, feature: str) -> ChosenEntries:
        """Return the entries of sets of a feature."""
        selection = selection_of(self.plan, False, self.settings, self.now_us)
        return chosen_entries(self.kept, feature, coverage_of(selection, self.settings, self.kept.settings))

    def leaves(self, feature: str = "", apart: bool = False, other: bool = False, level: int = -1) -> ChosenLeaves:
        """Return the leaves for a need; see `Need`."""
        return self.chosen[Need(other, feature, apart, level=level)]

"""Leaves and sets of all regions together answer the questions of a plan."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from streaming.kinds.sketch.plan import SketchPlan
from streaming.sketch.asking import distributed, grouped, inferential, of_sets, statistical
from streaming.sketch.asking.needs import Need, Partial, over_budget, parts, together
from streaming.sketch.asking.question import Question
from streaming.sketch.chosen import ChosenLeaves
from streaming.sketch.sets.sets import Sets
from streaming.sketch.settings import InvalidSketch, SketchSettings
from streaming.sketch.sketch import Sketch
from streaming.sketch.stream import StreamSketch

_BY_QUESTION = {
    name: answer
    for module in (statistical, distributed, grouped, of_sets, inferential)
    for name, answer in module.BY_QUESTION.items()
}


def checked(plan: SketchPlan, told: StreamSketch) -> None:
    """Raise InvalidSketch unless the sketch of a stream keeps what the questions of a plan need."""
    if error := _error(plan, told):
        raise InvalidSketch.of(error)


@functools.lru_cache(maxsize=1024)
def _error(plan: SketchPlan, told: StreamSketch) -> InvalidSketch | None:
    """Return the error about what a sketch lacks, None for nothing: what stops the questions even without elements."""
    sets = None if told.sets is None else Sets(told.sets)
    try:
        found = parts(plan, Sketch.empty(told.sketch), sets, 0)
        answered(plan, told.sketch, {need: [part] for need, part in found.items()}, 0)
    except InvalidSketch as error:
        return error.with_traceback(None)
    return None


def answered(
    plan: SketchPlan, settings: SketchSettings, found: Mapping[Need, Sequence[Partial]], now_us: int
) -> list[dict[str, Any]]:
    """Return the answers to the questions of a plan, as JSON documents, in their order.

    Parameters
    ----------
    plan : SketchPlan
    settings : SketchSettings
        Of the sketches.
    found : mapping of Need to sequence of list of pyarrow.Table
        What `parts` returned for each region.
    now_us : int
        The moment of the answer, the same as for `parts`.

    Raises
    ------
    InvalidSketch
        If a feature is not sketched, or the sketch does not keep what a question needs.
    """
    whole = {need: together(plan, need, partials, settings, now_us) for need, partials in found.items()}
    chosen = {need: part for need, part in whole.items() if isinstance(part, ChosenLeaves)}
    sets = next((part for part in whole.values() if isinstance(part, Sets)), None)
    over = over_budget(partial for partials in found.values() for partial in partials)
    return [_answer(Question(ask, plan, settings, chosen, sets, now_us), over) for ask in plan.ask]


def _answer(question: Question, over: Mapping[str, float]) -> dict[str, Any]:
    """Return the JSON document of an answer, given the features whose bins do not suffice."""
    ask = question.ask
    asked = {"question": ask.question, "features": list(ask.features), "confidence": question.confidence}
    limited = {name: round(over[name], 3) for name in ask.features if name in over}
    return asked | _BY_QUESTION[ask.question](question) | ({"over_budget": limited} if limited else {})

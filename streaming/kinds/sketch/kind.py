"""Queries of a stream's sketch: its rules, its words, and how it is evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Kind
from streaming.kinds.fields import whole
from streaming.kinds.schema import Schema
from streaming.kinds.sketch.plan import (
    SketchPlan,
)
from streaming.kinds.sketch.schema import selection_schema
from streaming.kinds.sketch.words import described
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space


class SketchKind(Kind[SketchPlan]):
    """Questions about what has passed, answered from a sketch."""

    name, written, plan_class = "sketch", "sketch", SketchPlan
    called = gettext_noop("a query of a sketch")
    explained = "streaming.explaining.ranges:sketch_term"

    def completed(self, fields: dict[str, Any], document: dict[str, Any], space: Space) -> dict[str, Any]:
        contrasts = any(ask.question == "contrast" for ask in fields["ask"])
        if contrasts != (fields["other"] is not None):
            got = gettext("contrast without other") if contrasts else gettext("other without contrast")
            raise InvalidPlan("other belongs to the question contrast; got %(got)s", got=got)
        return fields | {"area": fields["area"] or whole(space)}

    def words(self, document: dict[str, Any], unit: str) -> str:
        return described(document)

    def definition(self) -> Schema:
        return selection_schema(super().definition())

    def evaluation(self, plan: SketchPlan) -> Evaluation:
        return Evaluation.SKETCH

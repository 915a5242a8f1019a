"""Closest points of approach: the plan.

References
----------
IMO resolution A.823(19), 1995: distance at the closest point of approach (CPA), and time to it (TCPA).
"""

from dataclasses import dataclass
from typing import Annotated, Any

from streaming.errors import InvalidPlan
from streaming.kinds.approach.plan import MOST_AHEAD_S
from streaming.kinds.fields import EMIT_KEPT
from streaming.kinds.join.partners import Partners, PartnersIn, parse_partners
from streaming.kinds.parts import Box, Filter, check_keys
from streaming.kinds.schema import Schema, ref
from streaming.kinds.values import Definitions, FiniteNumber, Flag, Reading
from streaming.language import gettext
from streaming.spaces import Space

GAP_S = 300.0
# A pair that keeps its distance has no closest point: slower than this, two do not come nearer.
SLOWEST_MPS = 0.1
MOST_WITHIN_M = 100_000.0


PARTNER_KEYS = ("stream", "where", "filters", "pair_filters")


@dataclass(frozen=True, kw_only=True)
class ApproachedIn(PartnersIn):
    """The other objects, in the key `join`: a stream and filters; without it, all objects of the query's own stream."""

    null: bool = True
    optional: bool = True

    def missing(self, reading: Reading) -> Partners:
        return self.read({"stream": reading.fields["stream"]}, reading)

    def read(self, value: Any, reading: Reading) -> Partners:
        if not isinstance(value, dict):
            raise InvalidPlan("join must be an object with stream; got %(document)s", document=f"{value!r:.200}")
        check_keys(value, PARTNER_KEYS, gettext("join of a closest approach"))
        # The boxes that are compared are those of the ways.
        return parse_partners({**value, "predicate": "boxes"}, reading.space, ("stream",))

    def write(self, plan: Any, name: str, space: Space) -> dict[str, Any]:
        document = super().write(plan, name, space)
        del document["predicate"]
        return document

    def schema(self) -> Schema:
        return ref("approached")

    def definitions(self) -> Definitions:
        partners = super().definitions()["partners"]
        properties = {name: partners["properties"][name] for name in PARTNER_KEYS}
        properties["stream"] = {"type": "string", "minLength": 1, "description": "The stream of the other objects."}
        schema = {"description": "The objects that come close.", "type": "object", "properties": properties}
        return {"approached": schema | {"required": ["stream"], "additionalProperties": False}}


@dataclass(frozen=True)
class ClosestApproachPlan:
    """Pairs of objects that will be close to each other soon, if both keep the course and speed of their newest report.

    Parameters
    ----------
    stream : str
        The stream whose objects the query evaluates.
    partners : Partners
        The stream of the other objects, and the filters that they must pass; without it, the query's own stream.
    within_m : float
        The two must be no farther from each other at the closest point of approach, in metres.
    within_s : float
        The closest point of approach must be at most so many seconds after the later of the two reports.
    area : tuple of float, length 2n
        The object must be in this area now; its partner may be elsewhere.
    gap_s : float
        The two reports must not be more than so many seconds apart.
    mirrored : bool
        If both objects are of one stream: whether a pair that satisfies the query both ways is told both ways.
    where : str
        CQL2 text over the object's properties; empty for none.
    filters : tuple of Filter
        An object must pass all of them.
    emit : {"changes", "membership"}
        ``changes``: entries, exits, and other places or times of the closest point; ``membership``: entries and exits
        only.
    """

    stream: str
    partners: Annotated[Partners, ApproachedIn()]
    within_m: Annotated[float, FiniteNumber(above=0, most=MOST_WITHIN_M)]
    within_s: Annotated[float, FiniteNumber(above=0, most=MOST_AHEAD_S)]
    area: Box
    gap_s: Annotated[float, FiniteNumber(least=0, most=MOST_AHEAD_S)] = GAP_S
    mirrored: Annotated[bool, Flag()] = False
    where: str = ""
    filters: tuple[Filter, ...] = ()
    emit: Annotated[str, EMIT_KEPT] = "changes"
    kind: str = "closest_approach"

    @property
    def transform(self) -> tuple[()]:
        """Nothing: it is not the box of an object that is compared."""
        return ()

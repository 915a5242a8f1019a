"""Closest points of approach: how a plan is read, written, described and evaluated."""

from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.approach.plan import MOST_AHEAD_S
from streaming.kinds.base import Evaluation, Kind, Prediction, Source, udfs
from streaming.kinds.closest_approach.plan import GAP_S, KEYS, MOST_WITHIN_M, PARTNER_KEYS, ClosestApproachPlan
from streaming.kinds.closest_approach.schema import definition, definitions
from streaming.kinds.encounter.kind import duration
from streaming.kinds.fields import area_of, check_kept, emitted, located, opening, whole
from streaming.kinds.join.partners import parse_partners, partners_document
from streaming.kinds.join.plan import Partners
from streaming.kinds.parts import UserFilter, check_keys, parse_number
from streaming.kinds.schema import of_kind
from streaming.kinds.words import number, within
from streaming.language import gettext
from streaming.spaces import Space


class ClosestApproachKind(Kind[ClosestApproachPlan]):
    """Pairs of objects that will be close to each other soon."""

    name, written, plan_class = "closest_approach", "closest_approach", ClosestApproachPlan

    def parse(self, document: dict[str, Any], space: Space) -> ClosestApproachPlan:
        check_keys(document, KEYS, gettext("a closest approach"))
        if not space.geographic:
            raise InvalidPlan(
                "a closest approach needs a space with longitude and latitude; got %(name)s", name=repr(space.name)
            )
        fields = located(document, space)
        check_kept(fields["emit"])
        mirrored = document.get("mirrored", False)
        if not isinstance(mirrored, bool):
            raise InvalidPlan("mirrored must be true or false; got %(mirrored)s", mirrored=f"{mirrored!r:.200}")
        return ClosestApproachPlan(
            partners=_partners(document.get("join"), fields["stream"], space),
            within_m=parse_number(document.get("within_m"), "within_m", above=0.0, hi=MOST_WITHIN_M),
            within_s=parse_number(document.get("within_s"), "within_s", above=0.0, hi=MOST_AHEAD_S),
            gap_s=parse_number(document.get("gap_s", GAP_S), "gap_s", lo=0.0, hi=MOST_AHEAD_S),
            mirrored=mirrored,
            **fields,
        )

    def document(self, plan: ClosestApproachPlan, space: Space) -> dict[str, Any]:
        partners = partners_document(plan.partners, space)
        del partners["predicate"]
        own = {name: getattr(plan, name) for name in ("within_m", "within_s", "gap_s", "mirrored")}
        return opening(plan) | {"join": partners} | own | emitted(plan, space) | area_of(plan, space, whole(space))

    def words(self, document: dict[str, Any], unit: str) -> str:
        near = gettext("will come within %(within_m)s%(unit)s of %(stream)s") % {
            "within_m": number(document["within_m"]),
            "unit": unit,
            "stream": document["join"]["stream"],
        }
        return gettext("%(near)s in %(within_s)s%(unit)s") % {
            "near": near,
            "within_s": duration(document["within_s"]),
            "unit": within(document, unit),
        }

    def definition(self) -> dict[str, Any]:
        return definition()

    def definitions(self) -> dict[str, dict[str, Any]]:
        return definitions()

    def condition(self) -> dict[str, Any]:
        return of_kind(self.written)

    def evaluation(self, plan: ClosestApproachPlan) -> Evaluation:
        return Evaluation.STREAM_JOIN

    def sources(self, plan: ClosestApproachPlan) -> tuple[Source, ...]:
        return (Source("join", "stream", plan.partners.name),)

    def user_filters(self, plan: ClosestApproachPlan) -> tuple[tuple[UserFilter, bool], ...]:
        return udfs(plan.filters + plan.partners.filters) + udfs(plan.partners.pair_filters, pairs=True)

    def prediction(self, plan: ClosestApproachPlan) -> Prediction:
        return Prediction(plan.within_m, plan.within_s, plan.gap_s, plan.mirrored)


def _partners(document: Any, stream: str, space: Space) -> Partners:
    """Return the partners that the key `join` describes; without it, all objects of the query's own stream."""
    document = {"stream": stream} if document is None else document
    if not isinstance(document, dict):
        raise InvalidPlan("join must be an object with stream; got %(document)s", document=f"{document!r:.200}")
    check_keys(document, PARTNER_KEYS, gettext("join of a closest approach"))
    # The boxes that are compared are those of the ways.
    return parse_partners({**document, "predicate": "boxes"}, space, ("stream",))

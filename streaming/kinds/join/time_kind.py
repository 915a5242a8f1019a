"""What the kinds of joins over event time share."""

from typing import Any, ClassVar, TypeVar

from streaming.kinds.base import Evaluation, Kind, Plan, Source, udfs
from streaming.kinds.details import PARTNER_REPORT, Detail
from streaming.kinds.parts import UserFilter

P = TypeVar("P", bound=Plan)


class TimeJoinKind(Kind[P]):
    """A kind of joins over event time: plans have `partners`, of which the source is a stream."""

    explained = "streaming.explaining.joins:time_term"
    details: ClassVar[tuple[Detail, ...]] = (PARTNER_REPORT,)
    boxes = ("area",)
    once = True

    def evaluation(self, plan: P) -> Evaluation:
        return Evaluation.TIME_JOIN

    def sources(self, plan: Any) -> tuple[Source, ...]:
        return (Source("join", plan.partners.source, plan.partners.name),)

    def user_filters(self, plan: Any) -> tuple[tuple[UserFilter, bool], ...]:
        return udfs(plan.filters + plan.partners.filters) + udfs(plan.partners.pair_filters, pairs=True)

    def measures(self, plan: Any) -> bool:
        return plan.partners.predicate == "dwithin"

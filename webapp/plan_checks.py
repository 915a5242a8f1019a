"""What a plan must not ask for: filters that are not enabled, and what the sketch of its stream does not keep."""

from typing import cast

from django.utils.translation import gettext

from streaming.errors import LookoutError
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.kinds.sketch.plan import SketchPlan
from streaming.sketch.asking.answering import checked
from streaming.sketch.stream import parse_stream_sketch
from streaming.spaces import Space
from streaming.udf import check_filter
from webapp.models import EnabledFilter, Stream
from webapp.refusals import Refused


def check_filters(plan: Plan, space: Space) -> None:
    """Raise Refused if a user-defined filter of a plan is not enabled, or does not accept its argument."""
    used = kind_of(plan).user_filters(plan)
    enabled = EnabledFilter.names() if used else []
    for entry, pairs in used:
        if entry.udf not in enabled:
            known = ", ".join(enabled) or gettext("(none)")
            raise Refused(
                "plan",
                gettext("udf must be installed, and enabled in the admin: one of %(known)s; got %(udf)s")
                % {"known": known, "udf": f"{entry.udf!r}"},
            )
        try:
            check_filter(entry.udf, entry.argument, space, pairs)
        except LookoutError as error:
            raise Refused("plan", error) from None


def check_sketch(plan: Plan, stream: Stream) -> None:
    """Raise Refused if a plan asks the sketch of a stream for what it does not keep."""
    if kind_of(plan).evaluation(plan) is not Evaluation.SKETCH:
        return
    if stream.sketch is None:
        raise Refused(
            "sketch",
            gettext("the stream %(name)s must be sketched, which staff can switch on in the admin")
            % {"name": stream.name},
        )
    try:
        checked(cast("SketchPlan", plan), parse_stream_sketch(stream.sketch, stream.space.parsed))
    except LookoutError as error:
        raise Refused("plan", error) from None

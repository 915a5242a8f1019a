"""What a plan must not ask for: filters that are not enabled, and what the sketch of its stream does not keep."""

from typing import cast

from django.utils.translation import gettext

from streaming.errors import LookoutError
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.kinds.sketch.plan import SketchPlan
from streaming.sketch.asking.answering import checked
from streaming.sketch.asking.resolution import coarse_cells
from streaming.sketch.stream import parse_stream_sketch
from streaming.spaces import Space
from streaming.udf import check_filter
from webapp.models import EnabledFilter, Stream
from webapp.words.refusals import Refused


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


def note_of_question(plan: SketchPlan, stream: Stream) -> str | None:
    """Return what to know about a checked question before its answer comes; None for nothing."""
    settings = parse_stream_sketch(stream.sketch or {}, stream.space.parsed).sketch
    coarse = coarse_cells(plan, settings)
    if coarse is None:
        return None
    return gettext(
        "The area is as large as %(cells)s cells of the sketch, and about %(whole)s %% of it are whole cells: "
        "the bounds of counts, correlations and other answers will be wide. Cells with cell_bits %(finer)s, not "
        "%(bits)s, would suit it. Choose a larger area, or have staff set them for the stream."
    ) % {
        "cells": f"{coarse.cells:.2g}",
        "whole": round(100 * coarse.whole),
        "finer": coarse.cell_bits,
        "bits": settings.cell_bits,
    }

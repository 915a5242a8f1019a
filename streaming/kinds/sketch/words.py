"""Queries of a sketch in words, from documents in their full form."""

from typing import Any

from streaming.kinds import words
from streaming.kinds.words import number
from streaming.language import gettext, gettext_noop


def described(document: dict[str, Any]) -> str:
    """Describe in words what a document in its full form asks for.

    Examples
    --------
    >>> ask = [{"question": "mean", "features": ["temp"]}, {"question": "std", "features": ["temp"]}]
    >>> time = {"last_s": 7200, "daily": {"from": "14:00", "to": "16:00"}}
    >>> described({"ask": ask, "polygon": [[0, 0], [1, 0], [0, 1]], "time": time, "confidence": 0.95, "once": True})
    'mean of temp, std of temp in the drawn area, in the last 2 h, from 14:00 to 16:00 daily; once'
    """
    asked = ", ".join(map(_asked, document["ask"]))
    selected = "".join([_place(document), _times(document.get("time", {})), _ranges(document.get("ranges", []))])
    other = document.get("other")
    against = "" if other is None else gettext("; against %(other)s") % {"other": _other(other)}
    sure = (
        ""
        if document["confidence"] == 0.95
        else gettext("; %(value)s %% sure") % {"value": number(100 * document["confidence"])}
    )
    return asked + selected + against + sure + (gettext("; once") if document["once"] else "")


def _asked(ask: dict[str, Any]) -> str:
    """Describe one question."""
    names = ", ".join(ask.get("features", []))
    return _WORDS.get(ask["question"], _statistic)(ask, names)


def _statistic(ask: dict[str, Any], names: str) -> str:
    return (
        gettext("%(question)s of %(names)s") % {"question": ask["question"], "names": names}
        if names
        else gettext(_OF_ALL[ask["question"]])
    )


def _density(ask: dict[str, Any], names: str) -> str:
    bounds = [
        gettext("from %(lo)s") % {"lo": number(ask["lo"])} if "lo" in ask else "",
        gettext("to %(hi)s") % {"hi": number(ask["hi"])} if "hi" in ask else "",
    ]
    return gettext("share of %(names)s %(bounds)s") % {"names": names, "bounds": " ".join(filter(None, bounds))}


def _member(ask: dict[str, Any], names: str) -> str:
    value = f'"{ask["text"]}"' if "text" in ask else number(ask["value"])
    return (
        gettext("whether %(names)s has %(value)s") % {"names": names, "value": value}
        if ask["question"] == "contains"
        else gettext("how often %(names)s is %(value)s") % {"names": names, "value": value}
    )


def _regression(ask: dict[str, Any], names: str) -> str:
    at = ", ".join(f"{name} {number(value)}" for name, value in zip(ask["by"], ask.get("at", []), strict=False))
    return (gettext("%(names)s by %(by)s") % {"names": names, "by": ", ".join(ask["by"])}) + (
        at and gettext(" at %(at)s") % {"at": at}
    )


def _cells(ask: dict[str, Any], names: str) -> str:
    return " ".join(
        filter(
            None,
            [
                ask["statistic"],
                names and gettext("of %(names)s") % {"names": names},
                gettext("in cells of %(level)s bits") % {"level": ask["level"]},
            ],
        )
    )


_OF_ALL = {"count": gettext_noop("count of elements"), "select": gettext_noop("sketch of all features")}
_WORDS = {
    "select": lambda ask, names: (
        gettext("sketch of %(names)s") % {"names": names} if names else gettext(_OF_ALL["select"])
    ),
    "outliers": lambda ask, names: (
        gettext("outliers of %(names)s beyond %(deviations)s deviations")
        % {"names": names, "deviations": number(ask["deviations"])}
    ),
    "contrast": lambda ask, names: (
        gettext("contrast of the %(statistic)s of %(names)s") % {"statistic": ask["statistic"], "names": names}
    ),
    "density": _density,
    "probability": lambda ask, names: (
        gettext("probability of %(names)s %(value)s") % {"names": names, "value": number(ask["value"])}
    ),
    "histogram": lambda ask, names: (
        gettext("histogram of %(names)s in %(bins)s bins") % {"names": names, "bins": ask["bins"]}
    ),
    "contains": _member,
    "frequency": _member,
    "regression": _regression,
    "forecast": lambda ask, names: (
        gettext("forecast of %(names)s for %(horizon_s)s") % {"names": names, "horizon_s": _length(ask["horizon_s"])}
    ),
    "cells": _cells,
    "series": lambda ask, names: gettext("%(names)s by %(every)s") % {"names": names, "every": ask["every"]},
}


def _place(document: dict[str, Any]) -> str:
    if "polygon" in document:
        return gettext(" in the drawn area")
    return gettext(" in %(words)s") % {"words": words.box(document["area"])} if "area" in document else ""


def _times(time: dict[str, Any]) -> str:
    said = ", " + gettext(" or ").join(map(_range, time["ranges"])) if "ranges" in time else ""
    if "last_s" in time:
        said += gettext(", in the last %(last_s)s") % {"last_s": _length(time["last_s"])}
    if "daily" in time:
        said += gettext(", from %(from)s to %(to)s daily") % {"from": time["daily"]["from"], "to": time["daily"]["to"]}
    return said + (f" ({time['zone']})" if said and "zone" in time else "")


def _range(entry: dict[str, str]) -> str:
    words = ((gettext("from %(time)s"), "from"), (gettext("until %(time)s"), "to"))
    sides = [side % {"time": _moment(entry[key])} for side, key in words if key in entry]
    return " ".join(sides)


def _moment(text: str) -> str:
    """Return a time in ISO 8601 as people write it: without the time at midnight, and without zeros for seconds."""
    day, _, clock = text.partition("T")
    wall = clock[:8].removesuffix(":00")
    return day if clock[:8] == "00:00:00" else f"{day} {wall}"


def _length(seconds: float) -> str:
    """Return a length of time in the largest unit that divides it."""
    for unit, length in ((gettext("days"), 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds)} s"


def _ranges(ranges: list[dict[str, Any]]) -> str:
    return gettext(", with ") + gettext(" and ").join(map(_bounded, ranges)) if ranges else ""


def _bounded(entry: dict[str, Any]) -> str:
    sides = [gettext(word) % {"bound": number(entry[key])} for key, word in _SIDES.items() if key in entry]
    return f"{entry['feature']} {gettext(' and ').join(sides)}"


_SIDES = {
    "lo": gettext_noop("at least %(bound)s"),
    "above": gettext_noop("above %(bound)s"),
    "hi": gettext_noop("at most %(bound)s"),
    "below": gettext_noop("below %(bound)s"),
}


def _other(other: dict[str, Any]) -> str:
    """Describe the other selection by what differs."""
    place = (
        gettext("another drawn area")
        if "polygon" in other
        else _place(other).removeprefix(gettext(" in ")) or gettext("the same place")
    )
    times = (_times(other["time"]) or gettext(", at all times")) if "time" in other else ""
    return place + times

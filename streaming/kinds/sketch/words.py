"""Queries of a sketch in words, from documents in their full form."""

from typing import Any

from streaming.kinds import words
from streaming.kinds.words import number


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
    against = "" if other is None else f"; against {_other(other)}"
    sure = "" if document["confidence"] == 0.95 else f"; {number(100 * document['confidence'])} % sure"
    return asked + selected + against + sure + ("; once" if document["once"] else "")


def _asked(ask):
    """Describe one question."""
    names = ", ".join(ask.get("features", []))
    return _WORDS.get(ask["question"], _statistic)(ask, names)


def _statistic(ask, names):
    return f"{ask['question']} of {names}" if names else _OF_ALL[ask["question"]]


def _density(ask, names):
    bounds = [f"from {number(ask['lo'])}" if "lo" in ask else "", f"to {number(ask['hi'])}" if "hi" in ask else ""]
    return f"share of {names} {' '.join(filter(None, bounds))}"


def _member(ask, names):
    value = f'"{ask["text"]}"' if "text" in ask else number(ask["value"])
    return f"whether {names} has {value}" if ask["question"] == "contains" else f"how often {names} is {value}"


def _regression(ask, names):
    at = ", ".join(f"{name} {number(value)}" for name, value in zip(ask["by"], ask.get("at", []), strict=False))
    return f"{names} by {', '.join(ask['by'])}" + (at and f" at {at}")


def _cells(ask, names):
    return " ".join(filter(None, [ask["statistic"], names and f"of {names}", f"in cells of {ask['level']} bits"]))


_OF_ALL = {"count": "count of elements", "select": "sketch of all features"}
_WORDS = {
    "select": lambda ask, names: f"sketch of {names}" if names else _OF_ALL["select"],
    "outliers": lambda ask, names: f"outliers of {names} beyond {number(ask['deviations'])} deviations",
    "contrast": lambda ask, names: f"contrast of the {ask['statistic']} of {names}",
    "density": _density,
    "probability": lambda ask, names: f"probability of {names} {number(ask['value'])}",
    "histogram": lambda ask, names: f"histogram of {names} in {ask['bins']} bins",
    "contains": _member,
    "frequency": _member,
    "regression": _regression,
    "forecast": lambda ask, names: f"forecast of {names} for {_length(ask['horizon_s'])}",
    "cells": _cells,
    "series": lambda ask, names: f"{names} by {ask['every']}",
}


def _place(document):
    if "polygon" in document:
        return " in the drawn area"
    return f" in {words.box(document['area'])}" if "area" in document else ""


def _times(time):
    said = ", " + " or ".join(map(_range, time["ranges"])) if "ranges" in time else ""
    if "last_s" in time:
        said += f", in the last {_length(time['last_s'])}"
    if "daily" in time:
        said += f", from {time['daily']['from']} to {time['daily']['to']} daily"
    return said + (f" ({time['zone']})" if said and "zone" in time else "")


def _range(entry):
    sides = [f"{side} {_moment(entry[key])}" for side, key in (("from", "from"), ("until", "to")) if key in entry]
    return " ".join(sides)


def _moment(text):
    """Return a time in ISO 8601 as people write it: without the time at midnight, and without zeros for seconds."""
    day, _, clock = text.partition("T")
    wall = clock[:8].removesuffix(":00")
    return day if clock[:8] == "00:00:00" else f"{day} {wall}"


def _length(seconds):
    """Return a length of time in the largest unit that divides it."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{number(seconds / length)} {unit}"
    return f"{number(seconds)} s"


def _ranges(ranges):
    return ", with " + " and ".join(map(_bounded, ranges)) if ranges else ""


def _bounded(entry):
    sides = [f"{word} {number(entry[key])}" for key, word in _SIDES.items() if key in entry]
    return f"{entry['feature']} {' and '.join(sides)}"


_SIDES = {"lo": "at least", "above": "above", "hi": "at most", "below": "below"}


def _other(other):
    """Describe the other selection by what differs."""
    place = "another drawn area" if "polygon" in other else _place(other).removeprefix(" in ") or "the same place"
    times = (_times(other["time"]) or ", at all times") if "time" in other else ""
    return place + times

"""Write queries of a sketch as text like SQL, from the JSON document of a plan."""

import re
from typing import Any


def text_of(document: dict[str, Any]) -> str:
    """Return the text of the JSON document of a plan in its full form; `reading.document_of` is the inverse.

    Examples
    --------
    >>> ask = [{"question": "deciles", "features": ["temp", "wind"]}]
    >>> text_of({"stream": "weather", "kind": "sketch", "ask": ask, "confidence": 0.9, "once": True})
    'SELECT deciles(temp, wind) FROM weather WITH CONFIDENCE 0.9 ONCE'
    """
    asked = ", ".join(map(_call, document["ask"]))
    conditions = [*_selected(document), *map(_bounded, document.get("ranges", []))]
    other = _selected(document["other"]) if document.get("other") else []
    confidence = document.get("confidence", 0.95)
    parts = [
        f"SELECT {asked} FROM {_name(document['stream'])}",
        f"WHERE {' AND '.join(conditions)}" if conditions else "",
        f"AGAINST {' AND '.join(other)}" if other else "",
        f"WITH CONFIDENCE {_number(confidence)}" if confidence != 0.95 else "",
        "ONCE" if document.get("once") else "",
    ]
    return " ".join(filter(None, parts))


def _call(ask: dict[str, Any]) -> str:
    """Return a question as the call of a function."""
    options = {key: value for key, value in ask.items() if key not in ("question", "features")}
    arguments = [*map(_name, ask.get("features", [])), *(f"{key} = {_value(value)}" for key, value in options.items())]
    return f"{ask['question']}({', '.join(arguments)})"


def _selected(document: dict[str, Any]) -> list[str]:
    """Return the conditions of a place and of times."""
    conditions = []
    if document.get("polygon"):
        vertices = ", ".join(" ".join(map(_number, vertex)) for vertex in document["polygon"])
        conditions.append(f"within(POLYGON (({vertices})))")
    if document.get("area"):
        corners = ", ".join(" ".join(map(_number, document["area"][side])) for side in ("lo", "hi"))
        conditions.append(f"within(BOX ({corners}))")
    if document.get("time") is not None:
        conditions += _timed(document["time"])
    return conditions


def _timed(time: dict[str, Any]) -> list[str]:
    """Return the conditions of times."""
    zone = f" ZONE {_text(time['zone'])}" if "zone" in time else ""
    ranges = [_range(entry) for entry in time.get("ranges", [])]
    conditions = [ranges[0] if len(ranges) == 1 else f"({' OR '.join(ranges)})"] if ranges else []
    if "last_s" in time:
        conditions.append(f"time IN LAST {_number(time['last_s'])} SECONDS")
    if "daily" in time:
        hours = " AND ".join(_text(time["daily"][side]) for side in ("from", "to"))
        conditions.append(f"time OF DAY BETWEEN {hours}")
    conditions = conditions or ["ANY TIME"]
    return [*conditions[:-1], conditions[-1] + zone]


def _range(entry: dict[str, str]) -> str:
    if len(entry) == 2:
        return f"time BETWEEN {_text(entry['from'])} AND {_text(entry['to'])}"
    return f"time >= {_text(entry['from'])}" if "from" in entry else f"time < {_text(entry['to'])}"


def _bounded(entry: dict[str, Any]) -> str:
    """Return the conditions of a range of a feature."""
    name = _name(entry["feature"])
    return " AND ".join(f"{name} {sign} {_number(entry[key])}" for key, sign in _SIGNS.items() if key in entry)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"({', '.join(_name(item) if isinstance(item, str) else _number(item) for item in value)})"
    return _text(value) if isinstance(value, str) else _number(value)


def _number(value: float | None) -> str:
    return "NULL" if value is None else repr(value).removesuffix(".0")


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _name(value: str) -> str:
    """Return a name, in double quotes unless the grammar takes it as it is."""
    plain = _PLAIN.fullmatch(value) and value.lower() not in _RESERVED
    return value if plain else '"' + value.replace('"', '""') + '"'


_PLAIN = re.compile(r"[^\W\d][\w.:]*")
# Where the grammar takes a name, it takes no other words than these.
_RESERVED = {"time", "within", "any"}
_SIGNS = {"lo": ">=", "above": ">", "hi": "<=", "below": "<"}

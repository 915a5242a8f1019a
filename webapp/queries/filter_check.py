"""Check a filter while a user writes it: what is wrong with it, and how many known objects it matches."""

import difflib
from typing import Any

import orjson
import pyarrow as pa

from streaming.errors import InvalidPlan
from streaming.filters import parse_filter, passes
from streaming.property_columns import property_names

# Least similarity, from 0 to 1 as `difflib` measures it, at which a known name is suggested for an unknown one.
LIKENESS = 0.6


def check_filter_text(where: str, names: list[str], objects: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the check of a filter, as the message ``filter.checked`` reports it.

    Parameters
    ----------
    where : str
        CQL2 text.
    names : list of str
        Names of the properties that objects have; if empty, no name counts as unknown.
    objects : list of dict
        The properties of objects, at least those that the text names.

    Returns
    -------
    dict
        `error`, None or a sentence; `matches`, how many of the objects pass, None with an error; `of`, how many objects
        there are; `unknown`, a list of ``{"name", "nearest"}``: properties in the filter that are not in `names`, each
        with the most similar name, or None.

    Examples
    --------
    >>> check_filter_text("sped > 5", ["speed"], [{"speed": 7}])
    {'error': None, 'matches': 0, 'of': 1, 'unknown': [{'name': 'sped', 'nearest': 'speed'}]}
    """
    try:
        expression = parse_filter(where)
    except InvalidPlan as error:
        return {"error": str(error), "matches": None, "of": len(objects), "unknown": []}
    passing = passes(expression, pa.array([orjson.dumps(one).decode() for one in objects], pa.string()))
    unknown = [{"name": name, "nearest": _nearest(name, names)} for name in property_names(expression)]
    return {
        "error": None,
        "matches": int(passing.sum()),
        "of": len(objects),
        "unknown": [entry for entry in unknown if names and entry["name"] not in names],
    }


def _nearest(name: str, names: list[str]) -> str | None:
    folded = {known.lower(): known for known in names}
    return next((folded[like] for like in difflib.get_close_matches(name.lower(), folded, 1, LIKENESS)), None)

"""Parts of plans: boxes, transformations and filters, each with its JSON form.

References
----------
BBoxDB Streams (2022), section 4.3: modifying and filter transformations.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from streaming.cql2 import MAX_CHARACTERS as MAX_WHERE_CHARACTERS
from streaming.errors import InvalidPlan, InvalidSpace
from streaming.filters import parse_filter
from streaming.kinds.areas import AreaFilter
from streaming.language import gettext, numeral, thousands
from streaming.spaces import OPEN, Space

ENLARGEMENTS = ("enlarge_factor", "enlarge_value", "enlarge_m")
MAX_TRANSFORMS = 8
MAX_FILTERS = 8
MAX_KEYS = 1_000
MAX_ARGUMENT_CHARACTERS = 100_000

Box = tuple[float, ...]


@dataclass(frozen=True)
class Enlargement:
    """One transformation of an element's box (theta).

    Parameters
    ----------
    by : {"enlarge_factor", "enlarge_value", "enlarge_m"}
        ``enlarge_factor`` multiplies the box's extent about its centre; ``enlarge_value`` moves every side outwards, in
        the unit of its dimension; ``enlarge_m`` moves the sides of longitude and latitude outwards, in metres.
    amount : float
        The amount is not negative.
    """

    by: str
    amount: float


@dataclass(frozen=True)
class KeyFilter:
    """Passes the element, or feature, with a certain key.

    Parameters
    ----------
    key : str
        The key of the object in its stream, or of the feature in its layer.
    """

    key: str


@dataclass(frozen=True)
class KeysFilter:
    """Passes the elements, or features, whose key is one of several.

    Parameters
    ----------
    keys : tuple of str
        1 to 1,000 keys.
    """

    keys: tuple[str, ...]


@dataclass(frozen=True)
class BoxFilter:
    """Passes the elements, or features, whose box intersects a box.

    Parameters
    ----------
    box : tuple of float, length 2n
    """

    box: Box


@dataclass(frozen=True)
class UserFilter:
    """Passes the elements, or features, that a user-defined filter accepts.

    Parameters
    ----------
    udf : str
        The name of the filter: that of its entry point.
    argument : str
        Passed to the filter as it is. It is never run as code.
    """

    udf: str
    argument: str = ""


# The shape of an area is a filter, too, but it is written as the area.
Filter = KeyFilter | KeysFilter | BoxFilter | UserFilter | AreaFilter


def check_keys(document: Mapping[str, Any], keys: tuple[str, ...], what: str) -> None:
    """Raise `InvalidPlan` if a JSON object has other keys than `keys`; the message calls the object `what`."""
    unknown = sorted(set(document) - set(keys))
    if unknown:
        raise InvalidPlan(
            "%(what)s has the keys %(keys)s; got the unknown %(unknown)s",
            what=what,
            keys=", ".join(keys),
            unknown=f"{', '.join(unknown):.200}",
        )


def parse_choice(document: Mapping[str, Any], name: str, choices: tuple[str, ...]) -> str:
    """Return the value of the key `name`, which must be one of `choices`; the first choice if the key is missing."""
    value = document.get(name, choices[0])
    if value not in choices:
        raise InvalidPlan(
            "%(name)s must be one of %(choices)s; got %(value)s",
            name=name,
            choices=", ".join(choices),
            value=f"{value!r:.200}",
        )
    return value


def parse_box(value: Any, name: str, space: Space) -> Box | None:
    """Return the box of a JSON value ``{"lo": [...], "hi": [...]}``, or None for null.

    Raises
    ------
    InvalidPlan
        If the value breaks a rule. The message says `name`, the rule and the value. The other functions of this module
        raise it likewise.
    """
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"lo", "hi"}:
        raise InvalidPlan(
            '%(name)s must be an object of the form {"lo": [...], "hi": [...]}; got %(value)s',
            name=name,
            value=f"{value!r:.200}",
        )
    try:
        return space.corners(value["lo"], value["hi"])
    except InvalidSpace as error:
        raise InvalidPlan.of(error, name) from None


def box_document(box: Box, space: Space) -> dict[str, Any]:
    """Return the JSON form of a box, without unbounded dimensions at its end; null stands for no bound."""
    # Without numpy: the engine writes the plans of all queries whenever one changes.
    lo, hi = box[: space.n], box[space.n :]
    bounded = max((axis + 1 for axis in range(space.n) if lo[axis] != -math.inf or hi[axis] != math.inf), default=1)
    return {"lo": [_bound(value) for value in lo[:bounded]], "hi": [_bound(value) for value in hi[:bounded]]}


def _bound(value: float) -> float | None:
    return value if abs(value) < OPEN else None


def parse_transform(steps: Any, space: Space) -> tuple[Enlargement, ...]:
    """Return the transformations that a JSON list describes."""
    if not isinstance(steps, list) or len(steps) > MAX_TRANSFORMS:
        raise InvalidPlan(
            "transform must be a list of at most %(max_transforms)s enlargements; got %(steps)s",
            max_transforms=MAX_TRANSFORMS,
            steps=f"{steps!r:.200}",
        )
    return tuple(_enlargement(step, space) for step in steps)


def _enlargement(step: Any, space: Space) -> Enlargement:
    if not isinstance(step, dict) or len(step) != 1 or next(iter(step)) not in ENLARGEMENTS:
        raise InvalidPlan(
            "an enlargement must be an object with one of %(enlargements)s; got %(step)s",
            enlargements=", ".join(ENLARGEMENTS),
            step=f"{step!r:.200}",
        )
    ((by, amount),) = step.items()
    amount = parse_amount(amount, by)
    if by == "enlarge_m" and not space.geographic:
        raise InvalidPlan("enlarge_m needs a space with longitude and latitude; got %(name)s", name=repr(space.name))
    return Enlargement(by, amount)


def parse_amount(value: Any, name: str) -> float:
    """Return a JSON number as float, which must be finite and not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= sys.float_info.max):
        raise InvalidPlan(
            "%(name)s must be a finite number that is not negative; got %(value)s", name=name, value=f"{value!r:.200}"
        )
    return float(value)


def parse_number(
    value: Any, name: str, *, lo: float = -math.inf, hi: float = math.inf, above: float = -math.inf
) -> float:
    """Return a finite JSON number as float: within [lo, hi], and greater than `above`; -0 as 0, as it is written."""
    number = not isinstance(value, bool) and isinstance(value, int | float)
    if not number or not (abs(value) <= sys.float_info.max and lo <= value <= hi and value > above):
        bounds = [
            (above, gettext("above %(bound)s")),
            (lo, gettext("at least %(bound)s")),
            (hi, gettext("at most %(bound)s")),
        ]
        told = [words % {"bound": numeral(f"{bound:,.12g}")} for bound, words in bounds if math.isfinite(bound)]
        values = {"name": name, "bounds": gettext(" and ").join(told), "value": f"{value!r:.200}"}
        if told:
            raise InvalidPlan("%(name)s must be a finite number, %(bounds)s; got %(value)s", **values)
        raise InvalidPlan("%(name)s must be a finite number; got %(value)s", **values)
    return value + 0.0


def transform_document(transform: tuple[Enlargement, ...]) -> list[dict[str, float]]:
    """Return the JSON form of transformations."""
    return [{step.by: step.amount} for step in transform]


def parse_where(where: Any, name: str = "where") -> str:
    """Return CQL2 text, which must parse or be empty, without blanks around it."""
    if not isinstance(where, str) or len(where) > MAX_WHERE_CHARACTERS:
        raise InvalidPlan(
            "%(name)s must be CQL2 text of at most %(max_where_characters)s characters; got %(where)s",
            name=name,
            max_where_characters=MAX_WHERE_CHARACTERS,
            where=f"{where!r:.80}",
        )
    if where.strip():
        try:
            parse_filter(where)
        except InvalidPlan as error:
            raise InvalidPlan(error.text, **error.values | {"where": name}) from None
    return where.strip()


def parse_filters(
    filters: Any, name: str, space: Space, forms: tuple[str, ...] = ("key", "keys", "box", "udf")
) -> tuple:
    """Return the filters that a JSON list describes; `forms` are the forms that are allowed in it."""
    if not isinstance(filters, list) or len(filters) > MAX_FILTERS:
        raise InvalidPlan(
            "%(name)s must be a list of at most %(max_filters)s filters; got %(filters)s",
            name=name,
            max_filters=MAX_FILTERS,
            filters=f"{filters!r:.200}",
        )
    return tuple(_filter(entry, name, space, forms) for entry in filters)


def _filter(
    entry: Any, name: str, space: Space, forms: tuple[str, ...]
) -> KeyFilter | KeysFilter | BoxFilter | UserFilter:
    form = next((form for form in forms if form in entry), None) if isinstance(entry, dict) else None
    if form is None or set(entry) - {form, *(["argument"] if form == "udf" else [])}:
        raise InvalidPlan(
            'a filter in %(name)s must be an object with one of %(forms)s, and "argument" beside '
            '"udf" alone; got %(entry)s',
            name=name,
            forms=", ".join(forms),
            entry=f"{entry!r:.200}",
        )
    if form == "box":
        box = parse_box(entry["box"], f"{name}: box", space)
        if box is None:
            raise InvalidPlan("%(name)s: box must be an object with lo and hi; got null", name=name)
        return BoxFilter(box)
    if form == "key":
        return KeyFilter(parse_text(entry["key"], f"{name}: key"))
    if form == "keys":
        return KeysFilter(_keys(entry["keys"], f"{name}: keys"))
    argument = entry.get("argument", "")
    if not isinstance(argument, str) or len(argument) > MAX_ARGUMENT_CHARACTERS:
        raise InvalidPlan(
            "%(name)s: argument must be a text of at most %(max_argument_characters)s characters; got %(argument)s",
            name=name,
            max_argument_characters=MAX_ARGUMENT_CHARACTERS,
            argument=f"{argument!r:.80}",
        )
    return UserFilter(parse_text(entry["udf"], f"{name}: udf"), argument)


def _keys(keys: Any, name: str) -> tuple[str, ...]:
    if not isinstance(keys, list) or not 1 <= len(keys) <= MAX_KEYS:
        raise InvalidPlan(
            "%(name)s must be a list of 1 to %(max_keys)s keys; got %(keys)s",
            name=name,
            max_keys=thousands(MAX_KEYS),
            keys=f"{keys!r:.80}",
        )
    return tuple(parse_text(key, name) for key in keys)


def parse_text(value: Any, name: str) -> str:
    """Return a JSON text, which must not be empty."""
    if not isinstance(value, str) or not value:
        raise InvalidPlan(
            "%(name)s must be a text that is not empty; got %(value)s", name=name, value=f"{value!r:.200}"
        )
    return value


def filters_document(filters: tuple[Filter, ...], space: Space) -> list[dict[str, Any]]:
    """Return the JSON form of filters, without the shape of an area."""
    forms: Mapping[type, Any] = {
        KeyFilter: lambda f: {"key": f.key},
        KeysFilter: lambda f: {"keys": list(f.keys)},
        BoxFilter: lambda f: {"box": box_document(f.box, space)},
        UserFilter: lambda f: {"udf": f.udf, "argument": f.argument} if f.argument else {"udf": f.udf},
    }
    return [forms[type(entry)](entry) for entry in filters if type(entry) in forms]


def given(document: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """Return those of the names that have a value in the document; null counts as missing."""
    return [name for name in names if document.get(name) is not None]

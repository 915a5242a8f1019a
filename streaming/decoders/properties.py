"""Rename a feed's columns or properties, convert them to SI units, and drop values that mean none."""

import math
from collections.abc import Collection, Mapping
from types import UnionType
from typing import Any, TypeGuard

from streaming.decoders.units import FACTORS, scaled
from streaming.errors import InvalidOptions

_NUMBERS = (int, float)


def check_properties(properties: Mapping[str, Any]) -> None:
    """Raise InvalidOptions unless every value is a property's name, or an object with its name and a unit."""
    for source, target in properties.items():
        _check_target(f"properties[{source!r}]", target)


def _check_target(place: str, target: Any) -> None:
    if isinstance(target, str) and target:
        return
    if not isinstance(target, Mapping) or not set(target) <= {"name", "unit"} or not target.get("name"):
        raise InvalidOptions(
            '%(place)s must be a name or {"name": ..., "unit": ...}; got %(target)s', place=place, target=repr(target)
        )
    if not isinstance(target["name"], str):
        raise InvalidOptions("%(place)s.name must be a text; got %(name)s", place=place, name=repr(target["name"]))
    # A tuple, since a unit may be of any type, even one that cannot be looked up in a mapping.
    if target.get("unit", "number") not in tuple(FACTORS):
        raise InvalidOptions(
            "%(place)s.unit must be one of %(factors)s; got %(unit)s",
            place=place,
            factors=", ".join(FACTORS),
            unit=repr(target["unit"]),
        )


def check_null_values(null_values: Mapping[str, Any], kinds: type | UnionType, words: str) -> None:
    """Raise InvalidOptions unless every value is a list of instances of `kinds`, which the message calls `words`."""
    for source, values in null_values.items():
        if not isinstance(values, list | tuple) or not all(isinstance(value, kinds) for value in values):
            raise InvalidOptions(
                "null_values[%(source)s] must be a list of %(words)s; got %(values)s",
                source=repr(source),
                words=words,
                values=repr(values),
            )


def targets(properties: Mapping[str, Any]) -> dict[str, tuple[str, float | None]]:
    """Return each property's new name and the factor to its SI unit, which is None without a unit.

    Examples
    --------
    >>> targets({"a": "name", "b": {"name": "distance_m", "unit": "km"}})
    {'a': ('name', None), 'b': ('distance_m', 1000.0)}
    """
    return {source: _target(target) for source, target in properties.items()}


def _target(target: str | Mapping[str, str]) -> tuple[str, float | None]:
    if isinstance(target, str):
        return target, None
    unit = target.get("unit")
    return target["name"], None if unit is None else FACTORS[unit]


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value of a JSON document is a number.

    Examples
    --------
    >>> is_number(1.5), is_number(True), is_number("1")
    (True, False, False)
    """
    return type(value) in _NUMBERS  # bool is a class of its own


def read_number(value: Any) -> float | None:
    """Return a number of a JSON document, which may be written as text; None if a value is none.

    Examples
    --------
    >>> read_number(3), read_number(" 1.5"), read_number("ground"), read_number(True)
    (3, 1.5, None, None)
    """
    if type(value) in _NUMBERS:
        return value
    if not isinstance(value, str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def translated(
    given: Mapping[str, Any],
    targets: Mapping[str, tuple[str, float | None]],
    null_values: Mapping[str, Collection],
) -> Mapping[str, Any]:
    """Return an object's properties with new names and in SI units; those without a target stay as they are.

    Parameters
    ----------
    given : mapping
        Values as in a JSON document. A value that has a unit is left out if it is no finite number in SI units, nor the
        text of one.
    targets : mapping
        As `targets` returns it.
    null_values : mapping
        Values that mean none, by the property's original name; they are left out.

    Examples
    --------
    >>> knots = targets({"sog": {"name": "speed_mps", "unit": "knots"}})
    >>> translated({"sog": 10, "name": "Aino"}, knots, {}), translated({"sog": 102.3}, knots, {"sog": [102.3]})
    ({'speed_mps': 5.144444444444445, 'name': 'Aino'}, {})
    """
    if not targets and not null_values:
        return given
    result = {}
    for source, value in given.items():
        name, factor = targets.get(source, (source, None))
        if source in null_values and value in null_values[source]:
            continue
        number = value if factor is None else _in_si_units(value, factor, null_values.get(source, ()))
        if factor is None or number is not None:
            result[name] = number
    return result


def _in_si_units(value: Any, factor: float, null_values: Collection) -> float | None:
    number = read_number(value)
    if number is None or (number is not value and number in null_values):
        return None
    if factor == 1.0:
        return number if math.isfinite(number) else None
    return scaled(number, factor)

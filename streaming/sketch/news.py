"""Whether an answer differs from the one that was told before by more than its bounds."""

from typing import Any

import numpy as np

_BOUNDED = ("value", "low", "high")
# What may change without the answer being another one: what it is based on, and how many elements are in a cell.
_ASIDE = {"basis", "basis_of_other", "n", "one", "other", "false_positive", "interval", "past", "r2", "residual_std"}


def differs(told: Any, now: Any) -> bool:
    """Tell whether a value of an answer lies outside of the bounds that were told, or is about something else.

    Parameters
    ----------
    told, now : JSON values
        Answers to the same question.

    Examples
    --------
    >>> told = {"of": "temp", "value": 5.0, "low": 4.9, "high": 5.1}
    >>> differs(told, told | {"value": 5.05, "low": 5.0}), differs(told, told | {"value": 5.2})
    (False, True)
    """
    if isinstance(told, dict) and isinstance(now, dict):
        if told.keys() != now.keys():
            return True
        bounded = all(name in told for name in _BOUNDED)
        names = told.keys() - _ASIDE - set(_BOUNDED if bounded else ())
        return (bounded and _outside(told, now["value"])) or any(differs(told[name], now[name]) for name in names)
    if isinstance(told, list) and isinstance(now, list) and told and isinstance(told[0], dict):
        return len(told) != len(now) or any(differs(*both) for both in zip(told, now, strict=True))
    return told != now


def _outside(told: dict[str, Any], value: Any) -> bool:
    """Tell whether a value, or one of several, lies outside of the bounds that were told."""
    low, high, value = (np.atleast_1d(np.array(part, dtype=np.float64)) for part in (told["low"], told["high"], value))
    if len(low) != len(value):
        return True
    known = np.isfinite(low)
    inside = (value >= low) & (value <= np.where(np.isfinite(high), high, np.inf))
    return bool((known != np.isfinite(value)).any() or (known & ~inside).any())

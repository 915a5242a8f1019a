"""Fields of messages: a field's rule in words and the check of its values are made together."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.utils.functional import Promise, lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

MAX_NUMBER = 2**53 - 1

Check = Callable[[Any], bool]


@dataclass(frozen=True)
class Field:
    """One field of a message: its rule in words, the check of a value, whether it is required, and its default."""

    rule: str | Promise
    accepts: Check
    required: bool = True
    default: Any = None

    def optional(self, default: Any = None) -> "Field":
        """Return the field of which a message may lack the value; without a default, it has none then."""
        return replace(self, required=False, default=default)


def rule_of(text: str, **values: Any) -> str | Promise:
    """Return a rule with values, which is translated where it is shown."""
    return lazy(lambda: gettext(text) % values, str)()


def is_whole(value: Any) -> bool:
    """Tell whether a value is a whole number that JavaScript has."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def is_number(value: Any) -> bool:
    """Tell whether a value is the number of something: a whole number above 0."""
    return is_whole(value) and value > 0


def is_text(value: Any) -> bool:
    """Tell whether a value is a text."""
    return isinstance(value, str)


def is_object(value: Any) -> bool:
    """Tell whether a value is a JSON object."""
    return isinstance(value, dict)


def has_just(value: Any, **checks: Check) -> bool:
    """Tell whether a value is an object with just these keys, whose values pass the checks."""
    return isinstance(value, dict) and value.keys() == checks.keys() and all(checks[key](value[key]) for key in checks)


def number_of(rule: str | Promise) -> Field:
    """Return the field of the number of something."""
    return Field(rule, is_number)


def up_to(most: int) -> Field:
    """Return the field of a whole number from 1 on."""
    return Field(
        rule_of("a whole number from 1 to %(most)s", most=most), lambda value: is_number(value) and value <= most
    )


def text(most: int) -> Field:
    """Return the field of a text, which may be empty."""
    rule = rule_of("a text of at most %(most)s characters", most=most)
    return Field(rule, lambda value: is_text(value) and len(value) <= most)


def some_text(most: int, stripped: bool = True) -> Field:
    """Return the field of a text that is not empty, and not blank if it is `stripped`."""
    rule = rule_of("a text of 1 to %(most)s characters", most=most)
    return Field(rule, lambda value: is_text(value) and 0 < len(value.strip() if stripped else value) <= most)


def choice(options: Collection[str]) -> Field:
    """Return the field of one of some words."""
    return Field(rule_of("one of %(options)s", options=", ".join(options)), lambda value: value in options)


def listed(rule: str, most: int, each: Check, least: int = 0) -> Field:
    """Return the field of a list; the rule has a place for `most`."""
    return Field(
        rule_of(rule, most=most),
        lambda value: isinstance(value, list) and least <= len(value) <= most and all(map(each, value)),
    )


def or_null(field: Field, rule: str | Promise) -> Field:
    """Return the field that may be null, too."""
    return replace(field, rule=rule, accepts=lambda value: value is None or field.accepts(value))


def _is_instant(value: Any) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


FLAG = Field(_("true or false"), lambda value: isinstance(value, bool))
INSTANT = Field(_("a time in ISO 8601 with its zone"), _is_instant)

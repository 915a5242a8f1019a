"""``{% load plans %}``: what the keys of plans, as their kinds declare them, say of the fields of a form."""

from functools import lru_cache
from typing import Any

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from streaming.plans.schema import plan_schema

register = template.Library()


@lru_cache(maxsize=1)
def _definitions() -> dict[str, Any]:
    definitions: dict[str, Any] = plan_schema()["$defs"]
    return definitions


@register.simple_tag
def bounds(definition: str, key: str, per: float = 1, least: float | None = None) -> SafeString:
    """Return the attributes ``min`` and ``max`` of an input of numbers.

    Parameters
    ----------
    definition, key : str
        A definition of the JSON Schema of plans, such as the name of a kind, and one of its keys.
    per : float
        How many units of the key are one of the input: 60 for seconds in an input of minutes.
    least : float, optional
        The least number that the input takes, where the key must be above one.
    """
    schema = _definitions()[definition]["properties"][key]
    found = {"min": schema.get("minimum", schema.get("exclusiveMinimum")), "max": schema.get("maximum")}
    limits = {name: limit / per for name, limit in found.items() if limit is not None}
    limits |= {} if least is None else {"min": least}
    return format_html_join(" ", '{}="{}"', ((name, f"{limit:.12g}") for name, limit in limits.items()))

"""Words that the descriptions of several kinds of queries use."""

from typing import Any


def number(value: float) -> str:
    """Return a number as text, with commas between thousands and at most six decimals."""
    return f"{value:,.6f}".rstrip("0").rstrip(".")


def box(document: dict[str, Any]) -> str:
    """Return the two corners of a box as text."""
    corners = (
        ", ".join("any" if bound is None else number(bound) for bound in document[side]) for side in ("lo", "hi")
    )
    return " to ".join(corners)


def focus(around: dict[str, Any]) -> str:
    """Return the name of a focal object, or the coordinates of a place, as text."""
    return ", ".join(map(number, around["at"])) if "at" in around else f"{around['stream']} {around['key']}"

"""Answers as JSON documents."""

import math
from typing import Any

import numpy as np

from streaming.sketch.answers import Answer, Basis
from streaming.sketch.sets.questions import Number


def document(of: Any, answer: Answer | Number, **more: Any) -> dict[str, Any]:
    """Return a value with its bounds; `of` says what it is of: a feature, several features, or None for elements."""
    figures = {name: number(getattr(answer, name)) for name in ("value", "low", "high")}
    return {"of": of} | more | figures


def basis_document(basis: Basis) -> dict[str, Any]:
    """Return what an answer is based on."""
    names = ("leaves", "cut", "first_us", "last_us")
    return {"elements": number(basis.elements)} | {name: getattr(basis, name) for name in names}


def number(value: float) -> float | None:
    """Return a number as JSON can have it: null for NaN and infinity."""
    return float(value) if math.isfinite(value) else None


def numbers(column: np.ndarray) -> list[float | None]:
    """Return several numbers; see `number`."""
    return [number(value) for value in column.tolist()]


def listed(answers: list[dict[str, Any]], basis: Basis | None) -> dict[str, Any]:
    """Return several values, and what they are based on unless that is None."""
    return {"answers": answers} | ({} if basis is None else {"basis": basis_document(basis)})

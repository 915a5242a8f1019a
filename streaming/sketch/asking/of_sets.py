"""Whether a value was there, how often, and how many different values there were.

References
----------
Synopsis (2017), section 3.6.4: set queries.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from streaming.kinds.sketch.asks import Member
from streaming.sketch.asking.documents import document, listed
from streaming.sketch.asking.question import Question
from streaming.sketch.sets import questions
from streaming.sketch.sets.hashing import hashes_of_values


def _contains(question: Question) -> dict[str, Any]:
    (name,), entries = question.ask.features, question.entries
    found = questions.contains(question.kept, entries, _hashed(question.ask))
    answer = {"of": name, "present": found.present, "false_positive": found.false_positive}
    return listed([answer], None) | _of_entries(found)


def _frequency(question: Question) -> dict[str, Any]:
    (name,), entries = question.ask.features, question.entries
    found = questions.frequency(question.kept, entries, _hashed(question.ask), question.confidence)
    return listed([document(name, found)], None) | _of_entries(found)


def _distinct(question: Question) -> dict[str, Any]:
    names = question.ask.features
    found = [questions.distinct(question.kept, question.entries_of(name), question.confidence) for name in names]
    answers = [document(name, one) for name, one in zip(names, found, strict=True)]
    return listed(answers, None) | _of_entries(found[0])


def _of_entries(found: questions.ValuePresence | questions.Number) -> dict[str, Any]:
    return {"basis": {"elements": float(found.elements), "entries": found.entries}}


def _hashed(ask: Member) -> np.uint64:
    """Return the hash of the value that is asked for."""
    return hashes_of_values([repr(ask.value) if ask.text is None else ask.text])[0]


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {
    "contains": _contains,
    "frequency": _frequency,
    "distinct": _distinct,
}

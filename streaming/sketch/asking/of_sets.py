"""Whether a value was there, how often, and how many different values there were.

References
----------
Synopsis (2017), section 3.6.4: set queries.
"""

from collections.abc import Callable, Mapping
from typing import Any

from streaming.sketch.asking.documents import document, listed
from streaming.sketch.asking.question import Question
from streaming.sketch.sets import questions
from streaming.sketch.sets.hashing import hashes_of_values


def _contains(question):
    (name,), entries = question.ask.features, question.entries
    found = questions.contains(question.sets, entries, _hashed(question.ask))
    answer = {"of": name, "present": found.present, "false_positive": found.false_positive}
    return listed([answer], None) | _of_entries(found)


def _frequency(question):
    (name,), entries = question.ask.features, question.entries
    found = questions.frequency(question.sets, entries, _hashed(question.ask), question.confidence)
    return listed([document(name, found)], None) | _of_entries(found)


def _distinct(question):
    names = question.ask.features
    found = [questions.distinct(question.sets, question.entries_of(name), question.confidence) for name in names]
    answers = [document(name, one) for name, one in zip(names, found, strict=True)]
    return listed(answers, None) | _of_entries(found[0])


def _of_entries(found):
    return {"basis": {"elements": float(found.elements), "entries": found.entries}}


def _hashed(ask):
    """Return the hash of the value that is asked for."""
    return hashes_of_values([repr(ask.value) if ask.text is None else ask.text])[0]


BY_QUESTION: Mapping[str, Callable[[Question], dict[str, Any]]] = {
    "contains": _contains,
    "frequency": _frequency,
    "distinct": _distinct,
}

"""Many plans from JSON documents at once: documents that differ in their boxes alone are read as arrays.

Programs register thousands of queries that differ in nothing but their place. One document of such a *group* is read in
full, and the boxes of all of them are checked together. What is unusual in any way is read by itself, as `parse_plan`
does it. So a plan, its document and what is wrong with it do not depend on the other documents.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from streaming.kinds.base import Kind, Plan
from streaming.kinds.registry import KINDS, claimed
from streaming.plans.documents import parse_plan, plan_document
from streaming.spaces import Space

# All keys with boxes that some kind lets differ.
_BOX_KEYS = frozenset(itertools.chain.from_iterable(kind.boxes for kind in KINDS))
_NUMBERS = {int, float}


class Parsed(NamedTuple):
    """A plan, the JSON text of its document, and a plan that differs from it in its boxes alone.

    The text is that of `plan_document`, in the shortest form.
    """

    plan: Plan
    text: bytes
    like: Plan


Outcome: TypeAlias = Parsed | Exception


def parse_together(documents: Sequence[Any], space: Space) -> list[Outcome]:
    """Return the plan and the text of each of many JSON documents, or the error that `parse_plan` raises.

    Parameters
    ----------
    documents : sequence, length N
        JSON documents; they may be of any kinds, and wrong.
    space : Space

    Examples
    --------
    >>> from streaming.spaces import EARTH
    >>> boxes = [{"lo": [x, 0], "hi": [x + 1, 1]} for x in (0, 1, 500)]
    >>> *_, outside = parse_together([{"stream": "ships", "area": box} for box in boxes], EARTH)
    >>> outside
    InvalidPlan('area: longitude must start within [-180, 180]; got 500')
    """
    found: list[Outcome | None] = [None] * len(documents)
    for rows in _groups(documents):
        for row, parsed in zip(rows, _alike([documents[row] for row in rows], space), strict=False):
            found[row] = parsed
    return [
        _alone(document, space) if known is None else known for document, known in zip(documents, found, strict=True)
    ]


def _alone(document: Any, space: Space) -> Outcome:
    """Return the outcome of one document."""
    try:
        plan = parse_plan(document, space)
        return Parsed(plan, orjson.dumps(plan_document(plan, space)), plan)
    except Exception as error:  # whatever is wrong with a plan, the others are read
        return error


def _groups(documents: Sequence[Any]) -> Iterator[list[int]]:
    """Yield the positions of documents that differ only in the numbers of their boxes; two or more each."""
    groups: dict[Any, list[int]] = defaultdict(list)
    for row, document in enumerate(documents):
        if type(document) is dict:
            groups[_form(document)].append(row)
    return (rows for form, rows in groups.items() if form is not None and len(rows) > 1)


def _form(document: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return what documents of a group have in common; None for a document that is read by itself."""
    rest = document.copy()
    # A key whose value is null stays: some kinds do not take it.
    boxes = [(name, rest.pop(name)) for name in _BOX_KEYS if rest.get(name) is not None]
    try:
        return orjson.dumps(rest), *[(name, _sides(box)) for name, box in boxes]
    except (TypeError, KeyError, ValueError):
        return None


def _sides(box: Any) -> int:
    """Return how many numbers a box has on each side; raise an error if it does not look like a box."""
    low, high, count = box["lo"], box["hi"], len(box["lo"])
    if type(low) is not list or type(high) is not list or len(high) != count or len(box) != 2:
        raise ValueError
    return count


def _alike(documents: Sequence[dict[str, Any]], space: Space) -> Sequence[Outcome | None]:
    """Return the outcomes of the documents of a group; None for those that have to be read by themselves."""
    kind = _kind(documents[0])
    if kind is None or any(documents[0].get(name) is not None for name in _BOX_KEYS - set(kind.boxes)):
        return ()
    given = [name for name in kind.boxes if documents[0].get(name) is not None]
    boxes, sound = _boxes({name: [document[name] for document in documents] for name in given}, space)
    rows = np.flatnonzero(sound)
    example = _alone(documents[rows[0]], space) if given and len(rows) else None
    if not isinstance(example, Parsed):
        return ()
    plans = kind.like(example.plan, {name: list(map(tuple, boxes[name][rows].tolist())) for name in given})
    outcomes: list[Outcome | None] = [None] * len(documents)
    for row, plan, text in zip(rows.tolist(), plans, _texts(plans, example, kind, space), strict=True):
        outcomes[row] = Parsed(plan, text, example.plan)
    return outcomes


def _kind(document: dict[str, Any]) -> Kind[Any] | None:
    try:
        return claimed(document)
    except Exception:  # `_alone` says what is wrong
        return None


def _boxes(values: Mapping[str, Sequence[Any]], space: Space) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the bounds (N, 2n) of JSON boxes by name, and in which rows all of them are sound."""
    boxes: dict[str, np.ndarray] = {}
    sound = np.array(True)
    for name, column in values.items():
        numbers = [number for box in column for number in itertools.chain(box["lo"], box["hi"])]
        if not set(map(type, numbers)) <= _NUMBERS:
            numbers = [number if type(number) in _NUMBERS else np.nan for number in numbers]
        corners = np.fromiter(numbers, np.float64, len(numbers)).reshape(len(column), 2, -1)
        bounds, fits = space.boxes(corners[:, 0], corners[:, 1])
        boxes[name], sound = bounds, sound & fits
    return boxes, sound


def _texts(plans: Sequence[Plan], example: Parsed, kind: Kind[Any], space: Space) -> list[bytes]:
    """Return the texts of plans that are like the one of an example."""
    # Sound boxes are bounded in all dimensions that are given, and in no other.
    document = plan_document(example.plan, space)
    parts = [
        _box_texts([getattr(plan, key) for plan in plans], len(value["lo"]), space.n)
        if key in kind.boxes
        else itertools.repeat(orjson.dumps(value), len(plans))
        for key, value in document.items()
    ]
    form = b"{%s}" % b",".join(orjson.dumps(key) + b":%s" for key in document)
    return [form % texts for texts in zip(*parts, strict=True)]


def _box_texts(boxes: Sequence[Sequence[float]], count: int, n: int) -> list[bytes]:
    """Return the JSON texts of boxes that are bounded in the first `count` dimensions."""
    texts = orjson.dumps([{"lo": box[:count], "hi": box[n : n + count]} for box in boxes])
    return texts[1:-1].replace(b"},{", b"}\n{").split(b"\n")

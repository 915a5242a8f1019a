"""What the audit log keeps of the values of a change: the parts that differ, of bounded size. Pure."""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

# A longer value is kept as its beginning, its length and its digest.
VALUE_BYTES = 800
BEGINNING = 200

Pair = list[Any]


def recorded(changes: dict[str, Pair]) -> dict[str, Pair]:
    """Return what the log keeps of changes, by field: the old and the new value, at most some 1,600 bytes a field.

    Of two JSON documents it keeps the parts that differ, under their paths, unless these are too long together.

    Parameters
    ----------
    changes : dict of str to list
        By field: the old and the new value, as JSON.

    Examples
    --------
    >>> recorded({"name": ["a", "b"], "plan": [{"k": 1, "area": [1, 2, 3]}, {"k": 2, "area": [1, 5, 3]}]})
    {'name': ['a', 'b'], 'plan.k': [1, 2], 'plan.area[1]': [2, 5]}
    """
    kept: dict[str, Pair] = {}
    for field, (old, new) in changes.items():
        parts = dict(_differences(field, old, new)) if isinstance(old, dict) and isinstance(new, dict) else {}
        kept |= (
            parts if parts and len(_written(parts)) <= 2 * VALUE_BYTES else {field: [shortened(old), shortened(new)]}
        )
    return kept


def shortened(value: Any) -> Any:
    """Return a value, or of a long one the beginning of its JSON, its bytes and their SHA-256.

    Examples
    --------
    >>> shortened("short"), sorted(shortened("long" * 300))
    ('short', ['begins', 'bytes', 'sha256'])
    """
    written = _written(value)
    if len(written) <= VALUE_BYTES:
        return value
    begins = written[:BEGINNING].decode(errors="ignore")
    return {"begins": begins, "bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}


def in_words(value: Any) -> str:
    """Return a kept value as people read it.

    Examples
    --------
    >>> in_words(None), in_words(True), in_words([1, 2])
    ('–', 'yes', '1, 2')
    >>> in_words({"begins": "[1, 2", "bytes": 900, "sha256": "ab"})
    '[1, 2… (900 bytes, SHA-256 ab)'
    """
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict) and value.keys() == {"begins", "bytes", "sha256"}:
        return f"{value['begins']}… ({value['bytes']} bytes, SHA-256 {value['sha256']})"
    return str(value)


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Pair]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in {**old, **new}:
            if old.get(key) != new.get(key):
                yield from _differences(f"{path}.{key}", old.get(key), new.get(key))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _differences_of_lists(path, old, new)
    else:
        yield path, [old, new]


def _differences_of_lists(path: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, Pair]]:
    """Yield the items between the first and the last that differ."""
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(before) == len(after) == 1:
        yield from _differences(f"{path}[{head}]", before[0], after[0])
    else:
        yield f"{path}[{head}:]", [before, after]


def _common(one: list[Any], other: list[Any]) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace")

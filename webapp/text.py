"""Text from outside: what cannot be stored or sent on is refused where it comes in."""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.db import models

# JSON can spell halves of surrogate pairs and NUL; UTF-8 has no such characters, PostgreSQL no such texts.
UNSOUND = re.compile("[\x00\ud800-\udfff]")
ESCAPED = re.compile(r"\\u(?:0000|d[89a-f])", re.I)
RULE = "a text must have no NUL and no lone surrogate"


def unsound_text(value: Any) -> str | None:
    r"""Return a text within a JSON value, or a key, that is not sound; None where all are.

    Examples
    --------
    >>> unsound_text({"name": ["sound", {"a\x00": 1}]}), unsound_text({"name": "sound"})
    ('a\x00', None)
    """
    return next((text for text in _texts(value) if UNSOUND.search(text)), None)


def _texts(value) -> Iterator[str]:
    """Yield all texts of a JSON value, however deep."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            waiting += [*part, *part.values()]
        elif isinstance(part, list):
            waiting += part


def read_json(text: str) -> Any:
    """Return a JSON value whose numbers are finite and whose texts are sound.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    value = json.loads(text, parse_constant=_no_constant)
    # What no escape spells cannot be in it: most messages need no second look.
    if (UNSOUND.search(text) or ESCAPED.search(text)) and (unsound := unsound_text(value)) is not None:
        raise ValueError(f"{RULE}; got {unsound!r:.80}")
    return value


class SoundDecoder(json.JSONDecoder):
    """Decodes JSON as `read_json` does, for fields of forms."""

    def decode(self, text: str, *_) -> Any:
        """Return a JSON value whose texts are sound."""
        value = super().decode(text)
        if (unsound := unsound_text(value)) is not None:
            raise json.JSONDecodeError(f"{RULE}; got {unsound!r:.80}", text, 0)
        return value


class SoundJSONField(models.JSONField):
    """A model's JSON whose forms accept sound texts alone; in the database it is a `JSONField`."""

    def formfield(self, **options):
        """Return the form's field."""
        return super().formfield(**{"decoder": SoundDecoder, **options})

    def deconstruct(self):
        """Describe the field to migrations, for which it is Django's own."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


def _no_constant(name):
    raise ValueError(f"got {name}")

"""Text from outside: refuse at the border what cannot be stored or sent on."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from django.db import models
from django.utils.translation import gettext, gettext_noop

# JSON can express halves of surrogate pairs, which UTF-8 cannot encode, and NUL, which PostgreSQL cannot store.
UNSOUND = re.compile("[\x00\ud800-\udfff]")
ESCAPED = re.compile(r"\\u(?:0000|d[89a-f])", re.I)
RULE = gettext_noop("a text must have no NUL and no lone surrogate")


def unsound_text(value: Any) -> str | None:
    r"""Return the first unsound text or key in a JSON value; None if all are sound.

    Examples
    --------
    >>> unsound_text({"name": ["sound", {"a\x00": 1}]}), unsound_text({"name": "sound"})
    ('a\x00', None)
    """
    return next((text for text in _texts(value) if UNSOUND.search(text)), None)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts and keys of a JSON value at any depth."""
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
        With the reason.
    """
    value = json.loads(text, parse_constant=_no_constant)
    # Unsound characters come only literally or by such an escape, so most messages need no second pass.
    if (UNSOUND.search(text) or ESCAPED.search(text)) and (unsound := unsound_text(value)) is not None:
        raise ValueError(gettext("%(rule)s; got %(unsound)s") % {"rule": gettext(RULE), "unsound": f"{unsound!r:.80}"})
    return value


class SoundDecoder(json.JSONDecoder):
    """A decoder for JSON fields of forms that refuses unsound texts, as `read_json` does."""

    def decode(self, text: str, *_: Any) -> Any:
        """Return a JSON value; raise `json.JSONDecodeError` if a text in it is unsound."""
        value = super().decode(text)
        if (unsound := unsound_text(value)) is not None:
            raise json.JSONDecodeError(
                gettext("%(rule)s; got %(unsound)s") % {"rule": gettext(RULE), "unsound": f"{unsound!r:.80}"}, text, 0
            )
        return value


class SoundJSONField(models.JSONField):
    """A `JSONField` whose forms accept sound texts only; in the database it is a plain `JSONField`."""

    def formfield(self, **options: Any) -> Any:  # type: ignore[override]  # Django calls it by names only
        """Return the form field with the strict decoder."""
        return super().formfield(**{"decoder": SoundDecoder, **options})

    def deconstruct(self) -> tuple[str, str, Sequence[Any], dict[str, Any]]:
        """Describe the field to migrations as Django's own `JSONField`."""
        name, _, arguments, options = super().deconstruct()
        return name, "django.db.models.JSONField", arguments, options


def _no_constant(name: str) -> NoReturn:
    raise ValueError(gettext("got %(name)s") % {"name": name})

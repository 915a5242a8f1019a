"""Texts that were stored or sent in English, in the language of whoever reads them now.

The engine, the gateway and the workers know no user, so what they say of a query, a stream or a layer is in English,
and it is stored and compared as such. Where it is shown, it is found again among the texts that can be translated.
"""

import gettext as files
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from django.conf import settings
from django.utils import translation

from streaming.language import Numeral

_PLACEHOLDER = re.compile(r"%\((\w+)\)[-+ #0]*\d*(?:\.\d+)?[a-z]|%%")
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
# Texts with fewer letters of their own say too little to be found again by them.
_LEAST_LETTERS = 8
# Longer texts are left as they are, since the search takes time.
_MOST_CHARACTERS = 600
# Where messages for clients have such texts.
_STORED, _PARTS, _LISTS = ("error", "warning"), ("layer", "query", "left_out"), ("queries", "layers", "warnings")


def retold(text: str) -> str:
    """Return an English text in the user's language, as it is if it is not known.

    Values within the text that are such texts are translated, too.
    """
    language = translation.get_language() or settings.LANGUAGE_CODE
    if not text or language.split("-")[0] == "en" or len(text) > _MOST_CHARACTERS:
        return text
    return _retold(text, language)


def retold_in(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message for a client with the errors and warnings of queries and layers in the user's language."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    return message if language.split("-")[0] == "en" else _told_in(message)


def retold_health(text: str, language: str) -> str:
    """Return the message ``stream.status``, which is the same for all connections, with its errors in a language."""
    if language.split("-")[0] == "en":
        return text
    message = orjson.loads(text)
    with translation.override(language):
        message["streams"] = {name: _told_in(health) for name, health in message["streams"].items()}
    return orjson.dumps(message).decode()


def _told_in(message: dict[str, Any]) -> dict[str, Any]:
    told = dict(message)
    for key, value in message.items():
        if key in _STORED and isinstance(value, str):
            told[key] = retold(value)
        elif key in _PARTS and isinstance(value, dict):
            told[key] = _told_in(value)
        elif key in _LISTS and isinstance(value, list):
            told[key] = [_told_in(entry) if isinstance(entry, dict) else entry for entry in value]
    return told


@lru_cache(maxsize=4096)
def _retold(text: str, language: str) -> str:
    told = translation.gettext(text)
    if told != text:
        return told
    for pattern, message in _patterns(language):
        if found := pattern.fullmatch(text):
            return _filled(translation.gettext(message), found.groupdict())
    return text


def _filled(message: str, values: Mapping[str, str]) -> str:
    """Return a text with its values; a value that is one word, such as a name, is no text to be translated."""
    told = {name: retold(value) if " " in value else _numeral(value) for name, value in values.items()}
    return _PLACEHOLDER.sub(lambda part: "%" if part[0] == "%%" else told.get(part[1], ""), message)


def _numeral(text: str) -> str:
    return str(Numeral(text)) if _THOUSANDS.fullmatch(text) else text


@lru_cache
def _patterns(language: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the texts with placeholders, as patterns with a group for each value, those with most letters first."""
    compiled = Path(settings.LOCALE_PATHS[0], translation.to_locale(language), "LC_MESSAGES", "django.mo")
    if not compiled.is_file():
        return []
    with compiled.open("rb") as file:
        known = files.GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # Python offers no other list
    messages = [message for message in known if isinstance(message, str) and _PLACEHOLDER.search(message)]
    rated = [(sum(map(str.isalpha, _PLACEHOLDER.sub("", message))), message) for message in messages]
    ordered = sorted((one for one in rated if one[0] >= _LEAST_LETTERS), reverse=True)
    return [(_pattern(message), message) for _, message in ordered]


def _pattern(message: str) -> re.Pattern[str]:
    """Return the pattern of the texts that a message with placeholders gives."""
    parts, end, named = [], 0, set()
    for part in _PLACEHOLDER.finditer(message):
        parts.append(re.escape(message[end : part.start()]))
        end = part.end()
        if part[0] == "%%":
            parts.append("%")
        elif part[1] in named:
            parts.append(f"(?P={part[1]})")
        else:
            named.add(part[1])
            parts.append(f"(?P<{part[1]}>.*?)")
    return re.compile("".join([*parts, re.escape(message[end:])]), re.DOTALL)

"""The language of the texts that a person reads: English, until a program that knows its users sets a translator.

The web application sets Django's. Everywhere else, as in the engine and in the gateway, texts are in English. A text is
translated where it is shown, in the language of whoever reads it. A text with values is a whole sentence with named
placeholders, which are filled after it is translated: ``gettext("%(name)s is empty") % {"name": name}``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


class Translator(Protocol):
    """What translates: the module ``django.utils.translation``, for example."""

    def gettext(self, message: str) -> str:
        """Return a text in the reader's language."""

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        """Return the text for a number of things in the reader's language."""


class English:
    """Leaves all texts as they are."""

    def gettext(self, message: str) -> str:
        """Return the text."""
        return message

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        """Return the text for one thing, or that for several."""
        return singular if number == 1 else plural


@dataclass
class _Chosen:
    translator: Translator = field(default_factory=English)
    # What stands between thousands, and before decimals, in the reader's language.
    marks: Any = lambda: (",", ".")


_chosen = _Chosen()


def use(translator: Translator, marks: Any) -> None:
    """Translate all texts of this process.

    Parameters
    ----------
    translator : Translator
    marks : function of nothing
        Returns what stands between thousands and before decimals in the reader's language, two str.
    """
    _chosen.translator, _chosen.marks = translator, marks


def gettext(message: str) -> str:
    """Return a text in the reader's language."""
    return _chosen.translator.gettext(message)


def ngettext(singular: str, plural: str, number: int) -> str:
    """Return the text for a number of things in the reader's language."""
    return _chosen.translator.ngettext(singular, plural, number)


def gettext_noop(message: str) -> str:
    """Return a text as it is. It marks a constant, which `gettext` translates where it is shown."""
    return message


def numeral(text: str) -> str:
    """Return a number that is written in English, such as ``1,234.5``, with the marks of the reader's language."""
    thousands, decimal = _chosen.marks()
    if (thousands, decimal) == (",", "."):
        return text
    return text.replace(",", "\0").replace(".", decimal).replace("\0", thousands)


class Numeral(str):
    """A number as text in English, such as ``1,234.5``, which is written in the reader's language within a text.

    Examples
    --------
    >>> "got %(count)s" % {"count": thousands(1234)}
    'got 1,234'
    """

    __slots__ = ()

    def __str__(self) -> str:
        return numeral(self.english)

    @property
    def english(self) -> str:
        """The number in English."""
        return "".join(self)


def thousands(number: float) -> Numeral:
    """Return a number with a mark between thousands."""
    return Numeral(f"{number:,}")


def filled(message: str, values: Mapping[str, Any]) -> str:
    """Return a text with its values. A text without values is not filled, so it may have percent signs.

    Examples
    --------
    >>> filled("%(name)s must be a number", {"name": "k"}), filled("100 %", {})
    ('k must be a number', '100 %')
    """
    return message % values if values else message

"""Errors that a person can act on: each message states the rule, then the value that broke it."""

from typing import Any, Self

from streaming.language import Numeral, filled, gettext


class LookoutError(ValueError):
    """Base of every error that Lookout raises on purpose.

    Its message is translated where it is shown, by ``str``. `english` is the same in all programs: for what is stored.

    Parameters
    ----------
    text : str
        The message, with placeholders such as ``%(name)s`` if there are values.
    values
        What the placeholders stand for: str, numbers, or other errors.

    Examples
    --------
    >>> str(LookoutError("k must be at least 1; got %(k)s", k=0))
    'k must be at least 1; got 0'
    """

    def __init__(self, text: str = "", /, **values: Any) -> None:
        super().__init__(text)
        self.text, self.values = text, values

    def __str__(self) -> str:
        return filled(gettext(self.text) if self.text else "", self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.english!r})"

    @property
    def english(self) -> str:
        """The message in English, also where users read other languages."""
        values = {name: getattr(value, "english", value) for name, value in self.values.items()}
        return filled(self.text, values)

    def document(self) -> dict[str, Any]:
        """Return the message as a JSON object that `of_document` reads, for another program to translate it."""
        return {"text": self.text, "values": {name: _document(value) for name, value in self.values.items()}}

    @classmethod
    def of_document(cls, document: dict[str, Any]) -> Self:
        """Return the error of a JSON object of `document`."""
        return cls(document["text"], **{name: _value(value) for name, value in document["values"].items()})

    @classmethod
    def of(cls, error: Exception, place: str = "") -> Self:
        """Return another error as one of this class, with the place of what it is about before it."""
        if place:
            return cls(PLACED, place=place, error=error)
        return cls(error.text, **error.values) if isinstance(error, LookoutError) else cls(UNPLACED, error=error)


def _document(value: object) -> Any:
    """Return a value of a message as JSON."""
    if isinstance(value, LookoutError):
        return value.document()
    if isinstance(value, Numeral):
        return {"numeral": value.english}
    return value if isinstance(value, int | float) else str(value)


def _value(document: Any) -> Any:
    """Return the value of a message; the inverse of `_document`."""
    if not isinstance(document, dict):
        return document
    return Numeral(document["numeral"]) if "numeral" in document else LookoutError.of_document(document)


# Messages without words of their own.
PLACED = "%(place)s: %(error)s"
UNPLACED = "%(error)s"


class InvalidSpace(LookoutError):
    """A space, or bounds in it, break a rule."""


class InvalidPlan(LookoutError):
    """A query plan breaks a rule."""


class InvalidFilter(LookoutError):
    """The name or the argument of a user's filter breaks a rule, or the filter fails."""


class InvalidOptions(LookoutError):
    """The options of a stream's transport or decoder break a rule."""

"""Form fields for the options of transports and decoders, made from the options' declarations."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson
from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import Promise, lazy
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.decoders.options import OptionDescription

_NUMBERS: dict[str, Callable[..., forms.Field]] = {"int": forms.IntegerField, "float": forms.FloatField}
_HINTS = {
    "texts": _("One a line: name = text."),
    "targets": _("One a line: name = property, or name = property [knots], or of another unit."),
    "text_lists": _("One a line: name = 511, n/a."),
    "value_lists": _("One a line: name = 511, n/a."),
    "names": _("With commas between; - for none."),
}
_WITHOUT_GAPS = _("With commas between.")
_NONE = "-"


class OptionText(forms.CharField):
    """A mapping or a list as text that people can write, or as JSON where the text form cannot express it.

    Parameters
    ----------
    shape : str
        One of `streaming.decoders.options.SHAPES`.
    """

    def __init__(self, shape: str, **options: Any) -> None:
        self.shape = shape
        widget = forms.TextInput if shape == "names" else forms.Textarea(attrs={"rows": 4, "spellcheck": "false"})
        super().__init__(widget=widget, **options)

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show."""
        return value if isinstance(value, str) or value is None else text_of(value, self.shape)

    def to_python(self, value: Any) -> Any:
        """Return the value of a text; None if it is empty."""
        if isinstance(value, dict | list):  # the initial value of a disabled field
            return value
        text = super().to_python(value)
        try:
            return parsed(text, self.shape) if text else None
        except ValueError as error:
            raise ValidationError(str(error)) from None


class PlainText(forms.CharField):
    r"""A text of one line, in which \t stands for a tab."""

    def __init__(self, **options: Any) -> None:
        super().__init__(strip=False, **options)

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show."""
        return value.replace("\t", "\\t") if isinstance(value, str) else value

    def to_python(self, value: Any) -> Any:
        """Return the text that is meant, with tabs."""
        return (super().to_python(value) or "").replace("\\t", "\t")


def _help(option: OptionDescription, hint: str | Promise) -> str:
    required = gettext("Required.") if option.required else ""
    return " ".join(filter(None, [f"{capfirst(gettext(option.doc))}.", str(hint), required]))


# The fields are made once, for all languages.
help_of = lazy(_help, str)


def field_of(option: OptionDescription, gaps: bool = True) -> forms.Field:
    """Return the form field of an option; an empty field keeps the option's default.

    Parameters
    ----------
    option : OptionDescription
    gaps : bool
        Whether a list of names may leave some out.
    """
    hint = _HINTS.get(option.shape, "") if gaps or option.shape != "names" else _WITHOUT_GAPS
    common: dict[str, Any] = {
        "label": option.name,
        "required": False,
        "initial": option.default,
        "help_text": help_of(option, hint),
    }
    if option.type == "bool":
        return forms.BooleanField(**common)
    if option.choices:
        empty = [("", "---------")] if option.required else []
        return forms.ChoiceField(choices=[*empty, *((choice, choice) for choice in option.choices)], **common)
    if option.type in _NUMBERS:
        return _NUMBERS[option.type](min_value=option.minimum, **common)
    return OptionText(option.shape, **common) if option.type in ("Mapping", "Sequence") else PlainText(**common)


def text_of(value: Any, shape: str) -> str:
    r"""Return a mapping or a list as text that `parsed` reads back, as JSON if the text form cannot express it.

    Examples
    --------
    >>> text_of({"sog": {"name": "speed_mps", "unit": "knots"}, "name": "name"}, "targets")
    'sog = speed_mps [knots]\nname = name'
    >>> text_of({"heading": [511, "511"]}, "value_lists"), text_of(["price", None], "names")
    ('heading = 511, "511"', 'price, -')
    >>> text_of({"a = b": "c"}, "texts")
    '{"a = b":"c"}'
    """
    try:
        text = _WRITERS[shape](value)
        if parsed(text, shape) == value or not value:
            return text
    except (ValueError, TypeError, KeyError, AttributeError):
        pass  # show a value that breaks a rule as JSON, so that people can correct it
    return orjson.dumps(value).decode()


def parsed(text: str, shape: str) -> Any:
    """Return the mapping or the list that a text describes.

    Parameters
    ----------
    text : str
        JSON, or the text form of the shape.
    shape : str
        One of `streaming.decoders.options.SHAPES`.

    Raises
    ------
    ValueError
        Where a line is not of the form ``name = value``, with the line; or where JSON is not valid.
    """
    if text.lstrip().startswith(("{", "[")):
        return orjson.loads(text)
    if shape == "names":
        names = [name.strip() for name in text.split(",")] if text.strip() else []
        return [None if name in (_NONE, "") else name for name in names]
    read = _READERS[shape]
    return {name: read(value) for name, value in map(_pair, filter(str.strip, text.splitlines()))}


def _pair(line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ValueError(gettext("each line must be name = value; got %(line)s") % {"line": repr(line.strip())})
    return name.strip(), value.strip()


def _target(text: str) -> str | dict[str, str]:
    name, bracket, unit = text.partition("[")
    if not bracket:
        return text
    return {"name": name.strip(), "unit": unit.strip().removesuffix("]")}


def _target_text(target: str | Mapping[str, str]) -> str:
    return target if isinstance(target, str) else f"{target['name']} [{target['unit']}]"


def _texts(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _value(text: str) -> int | float | str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else text


def _value_text(value: Any) -> str:
    if not isinstance(value, str):
        return orjson.dumps(value).decode()
    return value if _value(value) == value else orjson.dumps(value).decode()


def _lines(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda mapping: "\n".join(f"{name} = {write(value)}" for name, value in mapping.items())


_READERS: dict[str, Callable[[str], Any]] = {
    "texts": str,
    "targets": _target,
    "text_lists": _texts,
    "value_lists": lambda text: list(map(_value, _texts(text))),
}
_WRITERS: dict[str, Callable[[Any], str]] = {
    "texts": _lines(str),
    "targets": _lines(_target_text),
    "text_lists": _lines(", ".join),
    "value_lists": _lines(lambda values: ", ".join(map(_value_text, values))),
    "names": lambda names: ", ".join(_NONE if name is None else name for name in names),
}

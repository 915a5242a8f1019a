"""Options of decoders: frozen dataclasses that check themselves and can be shown to people."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from streaming.errors import InvalidOptions
from streaming.spaces import Space

_KINDS = {
    bool: (lambda value: isinstance(value, bool), "true or false"),
    int: (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    float: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
        "a finite number",
    ),
    str: (lambda value: isinstance(value, str), "a text"),
    Mapping: (lambda value: isinstance(value, Mapping), "an object"),
    Sequence: (lambda value: isinstance(value, list), "a list"),
}


REQUIRED = MISSING

# What an option that is a mapping or a list contains; forms that show it as text need to know.
SHAPES = {
    "texts": "a text by name",
    "targets": "by name a property's name, or its name and unit",
    "text_lists": "a list of texts by name",
    "value_lists": "a list of texts or numbers by name",
    "names": "a list of names, some of them null",
}


def option(default: Any, doc: str, choices: tuple = (), minimum: float | None = None, shape: str = "") -> Any:
    """Declare an option of a decoder or of a transport.

    Parameters
    ----------
    default : object
        `REQUIRED` if the option must be given. A mapping or a list is copied for each instance.
    doc : str
        One sentence that explains the option to people.
    choices : tuple, optional
        The allowed values; empty for any.
    minimum : float, optional
        The smallest allowed number.
    shape : str, optional
        For a mapping or a list: what it contains, one of `SHAPES`.
    """
    metadata = {"doc": doc, "choices": choices, "minimum": minimum, "shape": shape}
    if isinstance(default, dict | list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class OptionDescription:
    """What a form needs to know about an option; the default of a required option is None."""

    name: str
    type: str
    default: Any
    doc: str
    choices: tuple = ()
    minimum: float | None = None
    shape: str = ""
    required: bool = False


def describe(options: type) -> list[OptionDescription]:
    """Return the options that a dataclass declares by `option`, in order."""
    return [_description(declared) for declared in fields(options)]


def _description(declared):
    required = declared.default is MISSING and declared.default_factory is MISSING
    default = declared.default if declared.default_factory is MISSING else declared.default_factory()
    return OptionDescription(
        declared.name, declared.type.__name__, None if required else default, required=required, **declared.metadata
    )


@dataclass(frozen=True)
class Options:
    """Base of every decoder's options; it checks each field against its type, its choices and its minimum."""

    def __post_init__(self) -> None:
        """Check every field."""
        for declared in fields(self):
            _check(declared, getattr(self, declared.name))

    def check_space(self, space: Space) -> None:
        """Raise InvalidOptions unless the decoder can give elements of a space; by default, of a geographic space."""
        if not space.geographic:
            raise InvalidOptions(f"this decoder gives longitudes and latitudes, which {space.name} does not have")

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Return the options that a JSON object states.

        Raises
        ------
        InvalidOptions
            With the rule that the object breaks, and the value.
        """
        names = [declared.name for declared in fields(cls)]
        unknown = [key for key in document if key not in names]
        if unknown:
            allowed = f"may only have {', '.join(names)}" if names else "has none"
            raise InvalidOptions(f"this decoder's options: it {allowed}; got {unknown[0]!r}")
        return cls(**document)

    @classmethod
    def describe(cls) -> list[OptionDescription]:
        """Return the options with type, default and meaning, in order."""
        return describe(cls)


def check_texts(name: str, mapping: Mapping[str, Any]) -> None:
    """Raise InvalidOptions unless all values of a mapping are texts that are not empty."""
    for key, value in mapping.items():
        if not isinstance(value, str) or not value:
            raise InvalidOptions(f"{name}[{key!r}] must be a text; got {value!r}")


def _check(declared, value):
    name, rule = declared.name, declared.metadata
    is_kind, kind = _KINDS[declared.type]
    if not is_kind(value):
        raise InvalidOptions(f"{name} must be {kind}; got {value!r}")
    if rule["choices"] and value not in rule["choices"]:
        raise InvalidOptions(f"{name} must be one of {', '.join(map(str, rule['choices']))}; got {value!r}")
    if rule["minimum"] is not None and value < rule["minimum"]:
        raise InvalidOptions(f"{name} must be at least {rule['minimum']}; got {value!r}")

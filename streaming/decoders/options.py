"""Options of decoders: frozen dataclasses that check themselves and can be shown to people."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Self, cast

from streaming.errors import InvalidOptions
from streaming.language import gettext, gettext_noop
from streaming.spaces import Space

# In which ranges of altitude objects are whose altitude is not known.
NOWHERE, EVERYWHERE = "nowhere", "everywhere"
_KINDS = {
    bool: (lambda value: isinstance(value, bool), gettext_noop("true or false")),
    int: (lambda value: isinstance(value, int) and not isinstance(value, bool), gettext_noop("a whole number")),
    float: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
        gettext_noop("a finite number"),
    ),
    str: (lambda value: isinstance(value, str), gettext_noop("a text")),
    Mapping: (lambda value: isinstance(value, Mapping), gettext_noop("an object")),
    Sequence: (lambda value: isinstance(value, list), gettext_noop("a list")),
}


REQUIRED = MISSING

# What an option that is a mapping or a list contains; forms that show it as text need to know.
SHAPES = {
    "texts": gettext_noop("a text by name"),
    "targets": gettext_noop("by name a property's name, or its name and unit"),
    "text_lists": gettext_noop("a list of texts by name"),
    "value_lists": gettext_noop("a list of texts or numbers by name"),
    "names": gettext_noop("a list of names, some of them null"),
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


def _description(declared: Field) -> OptionDescription:
    required = declared.default is MISSING and declared.default_factory is MISSING
    default = declared.default if declared.default_factory is MISSING else declared.default_factory()
    return OptionDescription(
        declared.name,
        _type_of(declared).__name__,
        None if required else default,
        required=required,
        **declared.metadata,
    )


def _type_of(declared: Field) -> type:
    """Return the type of an option: a class, since no module that declares options postpones its annotations."""
    return cast(type, declared.type)


@dataclass(frozen=True)
class Options:
    """Base of options; it checks each field against its type, its choices and its minimum."""

    def __post_init__(self) -> None:
        """Check every field."""
        for declared in fields(self):
            _check(declared, getattr(self, declared.name))

    def check_space(self, space: Space) -> None:
        """Raise InvalidOptions unless the decoder can give elements of a space; by default, of a geographic space."""
        if not space.geographic:
            raise InvalidOptions(
                "this decoder gives longitudes and latitudes, which %(name)s does not have", name=space.name
            )

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> Self:
        """Return the options that a JSON object states.

        Raises
        ------
        InvalidOptions
            With the rule that the object breaks, and the value.
        """
        names = [described.name for described in cls.describe()]
        unknown = [key for key in document if key not in names]
        if unknown:
            allowed = gettext("may only have %(names)s") % {"names": ", ".join(names)} if names else gettext("has none")
            raise InvalidOptions(
                "this decoder's options: it %(allowed)s; got %(unknown)s", allowed=allowed, unknown=repr(unknown[0])
            )
        return cls(**document)

    @classmethod
    def describe(cls) -> list[OptionDescription]:
        """Return the options with type, default and meaning, in order."""
        return describe(cls)


@dataclass(frozen=True, kw_only=True)
class DecoderOptions(Options):
    """Base of every decoder's options."""

    drop_null_island: bool = option(True, "count positions at exactly 0, 0 as malformed")
    unknown_altitude: str = option(
        NOWHERE,
        "in which ranges of altitude objects are whose altitude is not known: in none, or in all",
        (NOWHERE, EVERYWHERE),
    )

    @classmethod
    def describe(cls) -> list[OptionDescription]:
        """Return the options with type, default and meaning; those of every decoder come last."""
        common = [declared.name for declared in fields(DecoderOptions)]
        return sorted(describe(cls), key=lambda described: described.name in common)


def check_texts(name: str, mapping: Mapping[str, Any]) -> None:
    """Raise InvalidOptions unless all values of a mapping are texts that are not empty."""
    for key, value in mapping.items():
        if not isinstance(value, str) or not value:
            raise InvalidOptions(
                "%(name)s[%(key)s] must be a text; got %(value)s", name=name, key=repr(key), value=repr(value)
            )


def _check(declared: Field, value: Any) -> None:
    name, rule = declared.name, declared.metadata
    is_kind, kind = _KINDS[_type_of(declared)]
    if not is_kind(value):
        raise InvalidOptions(
            "%(name)s must be %(kind)s; got %(value)s", name=name, kind=gettext(kind), value=repr(value)
        )
    if rule["choices"] and value not in rule["choices"]:
        raise InvalidOptions(
            "%(name)s must be one of %(choices)s; got %(value)s",
            name=name,
            choices=", ".join(map(str, rule["choices"])),
            value=repr(value),
        )
    if rule["minimum"] is not None and value < rule["minimum"]:
        raise InvalidOptions(
            "%(name)s must be at least %(minimum)s; got %(value)s",
            name=name,
            minimum=rule["minimum"],
            value=repr(value),
        )

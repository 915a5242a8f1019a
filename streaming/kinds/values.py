"""What the value of a key of a plan can be: how it is read, how it is written, and its JSON Schema.

The dataclass of a kind's plans declares its keys: it annotates each field with one of these values. Reading, writing
and describing go over the fields (`streaming.kinds.declared`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NamedTuple

from streaming.errors import InvalidPlan
from streaming.kinds.parts import parse_amount, parse_choice, parse_number, parse_text
from streaming.language import thousands
from streaming.property_columns import NAME, checked_name
from streaming.spaces import Space

Schema = dict[str, Any]
Definitions = Mapping[str, Schema]


class Reading(NamedTuple):
    """Where a value stands that is read.

    Parameters
    ----------
    name : str
        What messages call the value.
    space : Space
        The space of the plan.
    fields : dict
        The fields of the plan that were read before, by name.
    """

    name: str
    space: Space
    fields: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Value(ABC):
    """What the value of a key can be.

    Parameters
    ----------
    key : str
        The key; empty if it is called as the field is. Fields that share a key are parts of one object.
    null : bool
        Whether null counts as missing.
    optional : bool
        Whether the key may be missing although its field has no default.
    """

    key: str = ""
    null: bool = False
    optional: bool = False

    @abstractmethod
    def read(self, value: Any, reading: Reading) -> Any:
        """Return what a JSON value means.

        Raises
        ------
        InvalidPlan
            If the value breaks a rule. The message says the rule and the value.
        """

    def missing(self, reading: Reading) -> Any:
        """Return the field without its key, if it has no default."""
        return self.read(None, reading)

    def write(self, plan: Any, name: str, space: Space) -> Any:
        """Return the JSON value of the field `name` of a plan; None if its key is left out."""
        return getattr(plan, name)

    @abstractmethod
    def schema(self) -> Schema:
        """Return the JSON Schema of the values."""

    def definitions(self) -> Definitions:
        """Return the definitions that the schema refers to, by name, unless all plans share them."""
        return {}


@dataclass(frozen=True, kw_only=True)
class FiniteNumber(Value):
    """A finite number.

    Parameters
    ----------
    least, most, above : float
        The bounds; a number is greater than `above`.
    digits : int or None
        To how many decimals it is rounded.
    follows : function or None
        Returns the number of a plan without the key, given the fields that were read before.
    """

    least: float = -inf
    most: float = inf
    above: float = -inf
    digits: int | None = None
    follows: Callable[[Mapping[str, Any]], float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "optional", self.follows is not None)

    def read(self, value: Any, reading: Reading) -> float:
        number = parse_number(value, reading.name, lo=self.least, hi=self.most, above=self.above)
        return number if self.digits is None else round(number, self.digits)

    def missing(self, reading: Reading) -> Any:
        return self.read(self.follows(reading.fields) if self.follows else None, reading)

    def write(self, plan: Any, name: str, space: Space) -> float | None:
        number = getattr(plan, name)
        return None if number is None or not isfinite(number) else number

    def schema(self) -> Schema:
        limits = {"minimum": self.least, "maximum": self.most, "exclusiveMinimum": self.above}
        return {"type": "number"} | {rule: limit for rule, limit in limits.items() if isfinite(limit)}


@dataclass(frozen=True, kw_only=True)
class WholeNumber(Value):
    """A whole number of 1 to `most`."""

    most: int

    def read(self, value: Any, reading: Reading) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value not in range(1, self.most + 1):
            raise InvalidPlan(
                "%(name)s must be a whole number of 1 to %(most)s; got %(value)s",
                name=reading.name,
                most=thousands(self.most),
                value=f"{value!r:.200}",
            )
        return int(value)

    def schema(self) -> Schema:
        return {"type": "integer", "minimum": 1, "maximum": self.most}


@dataclass(frozen=True, kw_only=True)
class Flag(Value):
    """True or false."""

    def read(self, value: Any, reading: Reading) -> bool:
        if not isinstance(value, bool):
            raise InvalidPlan(
                "%(name)s must be true or false; got %(value)s", name=reading.name, value=f"{value!r:.200}"
            )
        return value

    def schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True, kw_only=True)
class PlanPart(Value):
    """A part of a plan with functions of its own.

    Parameters
    ----------
    reads : function
        As `read`.
    described : dict
        Its JSON Schema.
    writes : function or None
        Returns the JSON value of the field, given it and the space, as `write`; None if it is written as it is.
    defines : function
        As `definitions`.
    """

    reads: Callable[[Any, Reading], Any]
    described: Schema
    writes: Callable[[Any, Space], Any] | None = None
    defines: Callable[[], Definitions] = dict

    def read(self, value: Any, reading: Reading) -> Any:
        return self.reads(value, reading)

    def write(self, plan: Any, name: str, space: Space) -> Any:
        part = getattr(plan, name)
        return part if self.writes is None or part is None else self.writes(part, space)

    def schema(self) -> Schema:
        return self.described

    def definitions(self) -> Definitions:
        return self.defines()


def choice(name: str, options: tuple[str, ...]) -> PlanPart:
    """Return the value of a key that has one of some words; messages call it `name`."""
    return PlanPart(
        reads=lambda value, _: parse_choice({name: value}, name, options), described={"enum": list(options)}
    )


TEXT = PlanPart(reads=lambda value, at: parse_text(value, at.name), described={"type": "string", "minLength": 1})
AMOUNT = PlanPart(reads=lambda value, at: parse_amount(value, at.name), described={"type": "number", "minimum": 0})
PROPERTY_NAME = PlanPart(
    reads=lambda value, at: checked_name(parse_text(value, at.name), at.name),
    described=TEXT.described | {"pattern": f"^{NAME}$"},
)


@dataclass(frozen=True)
class Derived:
    """No value: the field follows from others, and has no key."""

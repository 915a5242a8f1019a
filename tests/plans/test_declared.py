"""The fields of a kind's plans declare the keys of its documents."""

from dataclasses import dataclass, replace
from typing import Annotated

import pytest

from streaming.errors import InvalidPlan
from streaming.kinds import declared
from streaming.kinds.registry import KINDS
from streaming.kinds.values import TEXT, Derived, FiniteNumber
from streaming.spaces import EARTH

# Its documents are those of ranges, with one key more.
OF_RANGES = "aggregate"


@dataclass(frozen=True)
class Pier:
    """A pier.

    Parameters
    ----------
    stream : str
        The stream.
    name : str
        What it is called.
    length_m : float
        How long it is.
    area_m2 : float
        Its area.
    kind : str
    """

    stream: str
    name: Annotated[str, replace(TEXT, key="called")]
    area_m2: Annotated[float, Derived()]
    length_m: Annotated[float, FiniteNumber(above=0, most=500)] = 20.0
    kind: str = "pier"


@dataclass(frozen=True)
class Undeclared:
    """A dataclass of which nobody knows how it is written."""

    stream: str
    width: float


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name != OF_RANGES], ids=lambda kind: kind.name)
def test_each_kind_declares_its_keys_and_its_schema_has_just_these(kind):
    assert set(kind.keys) - {"aggregate"} == set(declared.keys_of(kind.plan_class))
    assert set(kind.definition()["properties"]) - {"around"} == set(kind.keys) - {"around"}


def test_a_field_that_declares_no_key_is_an_error_of_the_program():
    with pytest.raises(TypeError, match=r"must be annotated with the value of its key; Undeclared\.width is not"):
        declared.keys_of(Undeclared)


def test_what_is_read_is_what_is_declared():
    assert declared.keys_of(Pier) == ("stream", "kind", "called", "length_m")
    document = {"stream": "s", "called": "west", "length_m": 100}
    read = declared.read(Pier, document, EARTH)
    assert read == {"stream": "s", "name": "west", "length_m": 100}
    assert declared.write(Pier(**read, area_m2=1.0), EARTH) == document
    assert declared.read(Pier, {"stream": "s", "called": "west"}, EARTH)["length_m"] == 20.0
    with pytest.raises(InvalidPlan, match=r"a pier: length_m must be a finite number, above 0 and at most 500; got 0"):
        declared.read(Pier, document | {"length_m": 0}, EARTH, "a pier: ")


def test_its_schema_has_bounds_defaults_words_and_what_is_needed():
    schema = declared.definition(Pier)
    length = {"type": "number", "exclusiveMinimum": 0, "maximum": 500, "default": 20.0}
    assert schema["properties"]["length_m"] == length | {"description": "How long it is."}
    assert schema["properties"]["kind"] == {"const": "pier"}
    assert schema["required"] == ["stream", "called", "kind"]

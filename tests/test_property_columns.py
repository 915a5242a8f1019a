"""Properties as numbers equal what Python reads from the same JSON, whichever way they are read."""

import math
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming import property_columns
from streaming.number_text import numbers_of_alike
from streaming.property_columns import number_columns

KEYS = ["a", "b", 'c"', "d,e", "f:g"]
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])
NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.just(-0.0))
OTHERS = st.sampled_from(
    ["7", "-1.5e3", "true", "x", "1,5", ',"a":5', '5,"b":6', "", None, True, False, [7, 8], {"a": 9}]
)


def number(value):
    """Return the number that a value counts as."""
    if isinstance(value, str):
        value = {"true": "1", "false": "0"}.get(value, value)
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


@st.composite
def objects(draw):
    """Return objects of which most have the same keys in the same order, each with a number."""
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, unique=True))
    usual = st.fixed_dictionaries(dict.fromkeys(keys, NUMBERS))
    odd = st.dictionaries(st.sampled_from(KEYS), NUMBERS | OTHERS)
    rows = draw(st.lists(usual, max_size=40))
    for row in draw(st.lists(odd | st.none(), max_size=draw(st.sampled_from([0, 0, 1, 10])))):
        rows.insert(draw(st.integers(0, len(rows))), row)
    return rows


@given(objects(), st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True), st.sampled_from([1, 7, 100]), KINDS)
def test_numbers_equal_those_that_python_reads(rows, names, size, kind):
    """In slices of any size, and whatever a few of the objects have."""
    text = pa.array([row if row is None else orjson.dumps(row).decode() for row in rows], kind)
    with patch.object(property_columns, "SLICE", size):
        read = number_columns(text, names)
    expected = [[number((row or {}).get(name)) for row in rows] for name in names]
    np.testing.assert_array_equal(read, np.array(expected).reshape(len(names), len(rows)))


def test_objects_that_have_one_property_more_than_the_others():
    """The few objects that are looked at do not show it."""
    rows = ['{"a":1,"b":2}'] * 100
    rows[51] = '{"a":1,"b":2,"c":3}'
    read = number_columns(pa.array(rows), ["a", "c"])
    assert read[0].tolist() == [1.0] * 100
    assert np.flatnonzero(~np.isnan(read[1])).tolist() == [51]


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=40))
def test_objects_that_are_alike_are_read_without_decoding_them(rows):
    text = pa.array([orjson.dumps({"a": a, "b": b}).decode() for a, b in rows])
    # A slice begins within the text of the whole array.
    for part in (text, text[len(rows) // 2 :]):
        read = numbers_of_alike(part, ["a", "b"])
        assert np.array_equal(read, np.array(rows[-len(part) :], dtype=np.float64))


@pytest.mark.parametrize(
    "other",
    [
        '{"b":1,"a":2}',
        '{"a":1}',
        '{"a":1,"b":2,"c":3}',
        '{"a": 1,"b":2}',
        '{"a":1,"b":2 }',
        '{"a":1,"b":null}',
        '{"a":"1","b":2}',
        '{"a":{"b":1},"b":2}',
        '{"a":1,"c":2}',
        '{"a":"1,","b":2}',
        '{"aa":1,"b":2}',
        "{}",
        None,
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_object_that_is_not_like_the_others_is_noticed(other, place):
    rows = ['{"a":1,"b":2}'] * 2
    rows.insert(place, other)
    assert numbers_of_alike(pa.array(rows), ["a", "b"]) is None


def test_an_object_that_is_null_has_no_numbers_whatever_text_it_hides():
    _, *text = pa.array(['{"a":1}', '{"a":2}']).buffers()
    objects = pa.StringArray.from_buffers(2, text[0], text[1], pa.py_buffer(b"\1"), 1)
    assert numbers_of_alike(objects, ["a"]) is None
    np.testing.assert_array_equal(number_columns(objects, ["a"]), [[1, np.nan]])

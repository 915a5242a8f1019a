"""Properties as numbers equal what Python reads from the same JSON, whichever way they are read."""

import math
from unittest.mock import patch

import numpy as np
import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streaming import property_columns
from streaming.property_columns import number_columns

KEYS = ["a", "b", 'c"', "d,e"]
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


@given(objects(), st.lists(st.sampled_from(["a", "b"]), min_size=1, unique=True), st.sampled_from([1, 7, 100]))
def test_numbers_equal_those_that_python_reads(rows, names, size):
    """In slices of any size, and whatever a few of the objects have."""
    text = pa.array([row if row is None else orjson.dumps(row).decode() for row in rows], pa.string())
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

"""Properties as numbers equal what Python reads from the same JSON, whichever way they are read."""

import math
from unittest.mock import patch

import numpy as np
import orjson
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming import property_columns
from streaming.compiled_json import scan
from streaming.number_text import read_numbers
from streaming.property_columns import PropertyColumns, number_column, number_columns, property_texts

KEYS = ["a", "b", "ä", 'c"', "d,e", "f:g", ""]
KINDS = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])
NUMBERS = st.one_of(st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.just(-0.0))
OTHERS = st.sampled_from(
    ["7", "-1.5e3", "true", "True", "x", "1,5", ',"a":5', '5,"b":6', "", None, True, False, [7, 8], {"a": 9}]
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


@given(
    objects(),
    st.lists(st.sampled_from(["a", "b", "ä"]), min_size=1, unique=True),
    st.sampled_from([1, 7, 100]),
    st.sampled_from([0, 8, 1000]),
    KINDS,
)
def test_numbers_equal_those_that_python_reads(rows, names, size, few, kind):
    """In slices of any size, in both ways, and whatever a few of the objects have."""
    text = pa.array([row if row is None else orjson.dumps(row).decode() for row in rows], kind)
    with patch.object(property_columns, "SLICE", size), patch.object(property_columns, "FEW", few):
        read = number_columns(text, names)
        np.testing.assert_array_equal(number_columns(text, names, np.arange(len(rows))[::-2]), read[:, ::-2])
    expected = [[number((row or {}).get(name)) for row in rows] for name in names]
    np.testing.assert_array_equal(read, np.array(expected).reshape(len(names), len(rows)))


def test_objects_that_have_one_property_more_than_the_others():
    rows = ['{"a":1,"b":2}'] * 100
    rows[51] = '{"a":1,"b":2,"c":3}'
    read = number_columns(pa.array(rows), ["a", "c"])
    assert read[0].tolist() == [1.0] * 100
    assert np.flatnonzero(~np.isnan(read[1])).tolist() == [51]


NUMBER_TEXTS = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.from_regex(
    r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@given(st.lists(st.tuples(NUMBER_TEXTS, NUMBER_TEXTS), min_size=1, max_size=40))
def test_numbers_are_rounded_as_python_rounds_them(rows):
    """However many digits they have, with and without an exponent."""
    numbers = np.empty((2, len(rows)))
    objects = pa.array([f'{{"a":{a},"b":{b}}}' for a, b in rows])
    assert not len(read_numbers(objects, np.arange(len(objects)), ["a", "b"], numbers))
    np.testing.assert_array_equal(numbers.T, [[float(a), float(b)] for a, b in rows])
    assert (np.signbit(numbers.T) == [[text.startswith("-") for text in row] for row in rows]).all()


def test_a_slice_begins_within_the_text_of_the_whole_array():
    numbers = np.empty((1, 2))
    assert not len(read_numbers(pa.array(['{"a":1}', '{"a":2}', '{"a":3}'])[1:], np.arange(2), ["a"], numbers))
    assert numbers.tolist() == [[2.0, 3.0]]


@pytest.mark.parametrize(
    ("other", "number"),
    [
        ('{"a": 1}', 1.0),
        (' {"a":1}', 1.0),
        ('{"a":1 }', 1.0),
        ('{"\\u0061":1}', 1.0),
        ('{"\\"":0,"a":1}', 1.0),
        ('{"a":"\\u0031"}', 1.0),
        ('{"b":{"a":5},"a":1}', 1.0),
        ('{"b":["a",{"a":5}],"a":1}', 1.0),
        ('{"a":1,"b":[1]}', 1.0),
        ('{"a":1,"b":2 }', 1.0),
        ('{"a":1,}', math.nan),
        ('{"a":1,"b"}', math.nan),
        ('{"a":[1]}', math.nan),
        ('{"a":1', math.nan),
        ('{"a"}', math.nan),
        ('{"a":1}}', math.nan),
        ("[1]", math.nan),
        ("", math.nan),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_compiled_code_does_not_read_is_noticed(other, number, place):
    rows = ['{"a":7}'] * 2
    rows.insert(place, other)
    numbers = np.empty((1, 3))
    assert read_numbers(pa.array(rows), np.arange(len(rows)), ["a"], numbers).tolist() == [place]
    with patch.object(property_columns, "FEW", 0):
        expected = [7.0] * 2
        expected.insert(place, number)
        np.testing.assert_array_equal(number_columns(pa.array(rows), ["a"])[0], expected)


def test_an_escape_in_another_value_does_no_harm():
    numbers = np.empty((1, 2))
    rows = ['{"b":"x\\",\\"a\\":5","a":1}', '{"b":"\\\\","a":2}']
    assert [orjson.loads(row)["a"] for row in rows] == [1, 2]
    assert not len(read_numbers(pa.array(rows), np.arange(len(rows)), ["a"], numbers))
    assert numbers.tolist() == [[1.0, 2.0]]


def test_names_that_repeat_in_an_object_do_no_harm():
    """There is room for as many open numbers as there are names. Which of the values counts is not specified."""
    rows = ['{"a":"1","a":"2","a":"3"}', '{"a":4}']
    with patch.object(property_columns, "FEW", 0):
        repeated, other = number_columns(pa.array(rows), ["a"])[0].tolist()
    assert repeated in (1.0, 2.0, 3.0)
    assert other == 4.0


def test_an_object_that_is_null_has_no_numbers_whatever_text_it_hides():
    _, *text = pa.array(['{"a":1}', '{"a":2}']).buffers()
    objects = pa.StringArray.from_buffers(2, text[0], text[1], pa.py_buffer(b"\1"), 1)
    numbers = np.empty((1, 2))
    assert not len(read_numbers(objects, np.arange(len(objects)), ["a"], numbers))
    np.testing.assert_array_equal(numbers, [[1, np.nan]])


PIECES = st.sampled_from([*'{}[]":,-.0123456789eEtfn\\ ä', '"a"', '"a":', '{"a":', "true", "null", '"b":"x"'])
TEXTS = st.lists(PIECES, max_size=30).map("".join)
BEGINNINGS = st.sampled_from(['{{"{}}}', '{{"a":{}}}', '{{"a":"{}}}', '{{"c":"{}}}'])


@given(st.builds(str.format, BEGINNINGS, TEXTS) | TEXTS | st.binary(max_size=30))
def test_no_text_is_read_behind_its_end(text):
    """Without compilation, to read there raises an error."""
    text = text if isinstance(text, bytes) else text.encode()
    text, names = np.array(bytearray(text), dtype=np.uint8), np.array(bytearray(b"ab"), dtype=np.uint8)
    places, numbers = np.array([0, len(text)], dtype=np.int32), np.empty((2, 1))
    open_ = np.empty(2, dtype=np.int64), np.empty((2, 2), dtype=np.int32)
    with np.errstate(over="ignore"):
        left = scan.py_func(
            text, places, np.array([0]), names, np.arange(3, dtype=np.uint64), numbers, np.empty(1, dtype=bool), *open_
        )
    assert 0 <= left <= 2
    assert (np.diff(open_[1][:left], axis=1) >= 0).all()
    assert (open_[1][:left] <= len(text)).all()


FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: number != int(number))


@given(st.lists(FRACTIONS | NUMBERS | OTHERS | st.text(st.characters(exclude_categories=["Cs"])), max_size=20))
def test_texts_of_numbers_tell_them_exactly(values):
    """Python reads the same number from the text as from the JSON, and texts stay as they are."""
    rows = [orjson.dumps({"a": value}).decode() for value in values]
    told = property_texts(pl.Series(rows, dtype=pl.String), "a").to_list()
    for value, text in zip(values, told, strict=True):
        if isinstance(value, str):
            assert text == value
        elif type(value) in (int, float):
            assert type(value)(text) == value


def test_conditions_see_numbers_of_many_digits_exactly():
    """Of these numbers, an eighth was wrong in the last bit."""
    values = np.random.default_rng(1).normal(size=200).tolist()
    columns = PropertyColumns(pa.array([orjson.dumps({"a": value}).decode() for value in values]))
    for row, value in enumerate(values):
        assert np.flatnonzero(columns.passing(number_column("a") == value)).tolist() == [row]

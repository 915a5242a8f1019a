"""Queries of sketches as text: what it means, and what is said of a text that breaks the grammar."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import InvalidPlan
from streaming.kinds.sketch.reading import MAX_CHARACTERS, document_of
from streaming.kinds.sketch.writing import text_of

SHOWN = """SELECT mean(temp), std(temp) FROM weather
WHERE within(POLYGON ((116 39, 117 39, 117 41, 116 39)))
  AND time BETWEEN '2013-06-01' AND '2013-09-01'
  AND time OF DAY BETWEEN '14:00' AND '16:00' ZONE 'Asia/Shanghai'
  AND wind > 3
WITH CONFIDENCE 0.9"""
BEGUN = "SELECT mean(temp) FROM weather"


def test_a_text_is_the_document_that_it_says():
    assert document_of(SHOWN) == {
        "stream": "weather",
        "kind": "sketch",
        "ask": [{"question": "mean", "features": ["temp"]}, {"question": "std", "features": ["temp"]}],
        "polygon": [[116, 39], [117, 39], [117, 41], [116, 39]],
        "time": {
            "ranges": [{"from": "2013-06-01", "to": "2013-09-01"}],
            "daily": {"from": "14:00", "to": "16:00"},
            "zone": "Asia/Shanghai",
        },
        "ranges": [{"feature": "wind", "above": 3}],
        "confidence": 0.9,
    }


@pytest.mark.parametrize(
    ("asked", "asks"),
    [
        ("*", [{"question": "select"}]),
        ("select(a, b)", [{"question": "select", "features": ["a", "b"]}]),
        ("count(*), COUNT(a)", [{"question": "count"}, {"question": "count", "features": ["a"]}]),
        ("density(temp, lo = -1.5, hi = 1e3)", [{"question": "density", "features": ["temp"], "lo": -1.5, "hi": 1e3}]),
        ("contains(key, 'it''s')", [{"question": "contains", "features": ["key"], "text": "it's"}]),
        ("frequency(route, 7)", [{"question": "frequency", "features": ["route"], "value": 7}]),
        (
            "regression(temp, by = (wind, PM2.5), at = (3, -4))",
            [{"question": "regression", "features": ["temp"], "by": ["wind", "PM2.5"], "at": [3, -4]}],
        ),
        ("series(temp, every = month)", [{"question": "series", "features": ["temp"], "every": "month"}]),
        ('mean("sea ""surface""")', [{"question": "mean", "features": ['sea "surface"']}]),
    ],
)
def test_a_question_is_written_as_the_call_of_a_function(asked, asks):
    assert document_of(f"SELECT {asked} FROM weather")["ask"] == asks


@pytest.mark.parametrize(
    ("condition", "keys"),
    [
        ("within(BOX (1 2, 3 4))", {"area": {"lo": [1, 2], "hi": [3, 4]}}),
        ("within(BOX (NULL 2 0, NULL 4 9))", {"area": {"lo": [None, 2, 0], "hi": [None, 4, 9]}}),
        ("time >= '2013-06-01'", {"time": {"ranges": [{"from": "2013-06-01"}]}}),
        ("(time < '2013' OR time >= '2014')", {"time": {"ranges": [{"to": "2013"}, {"from": "2014"}]}}),
        ("time IN LAST 2 HOURS", {"time": {"last_s": 7200}}),
        ("time in last 1.5 days", {"time": {"last_s": 129_600}}),
        ("a BETWEEN 1 AND 2", {"ranges": [{"feature": "a", "lo": 1, "hi": 2}]}),
        (
            "a >= 1 AND b < 2 AND a < 5",
            {"ranges": [{"feature": "a", "lo": 1, "below": 5}, {"feature": "b", "below": 2}]},
        ),
        ("a = 4", {"ranges": [{"feature": "a", "lo": 4, "hi": 4}]}),
        ('"time" > 4', {"ranges": [{"feature": "time", "above": 4}]}),
        ("timely > 4 AND day > 2", {"ranges": [{"feature": "timely", "above": 4}, {"feature": "day", "above": 2}]}),
    ],
)
def test_a_condition_selects_a_place_times_or_values(condition, keys):
    document = document_of(f"{BEGUN} WHERE {condition}")
    assert {key: document[key] for key in document.keys() - {"stream", "kind", "ask"}} == keys


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: SELECT is expected; got the end"),
        ("SELECT mean(temp) FRM weather", "line 1, column 19: FROM or a comma is expected; got FRM"),
        ("SELECT avg(temp) FROM weather", "line 1, column 8: one of select, count, .* is expected; got avg"),
        ("SELECT mean(temp", r"line 1, column 17: \), = or a comma is expected; got the end"),
        (f"{BEGUN}\n  WHERE time > '2013'", "line 2, column 14: <, >=, BETWEEN, IN or OF is expected; got >"),
        (f"{BEGUN}\n\n  WHERE\n   a > b", "line 4, column 8: a number is expected; got b"),
        (f"{BEGUN} WHERE time BETWEEN 3", "line 1, column 51: a text in single quotes is expected; got 3"),
        (f"{BEGUN} WHERE time IN LAST 3 moons", "line 1, column 53: a unit such as HOURS is expected; got moons"),
        (f"{BEGUN} WHERE name = 'x'", "line 1, column 45: a number is expected; got 'x'"),
        (f"{BEGUN} WHERE within(CIRCLE (1 1))", "line 1, column 45: BOX or POLYGON is expected; got CIRCLE"),
        (f"{BEGUN} WHERE within(POLYGON (0 0, 1 1))", r"line 1, column 54: \( is expected; got 0"),
        (f"{BEGUN} AGAINST wind > 3", r"line 1, column 40: \(, ANY, TIME or WITHIN is expected; got wind"),
        (f"{BEGUN} WITH CONFIDENCE high", "line 1, column 48: a number is expected; got high"),
        (f"{BEGUN} WHERE a > 3 AND a > 4", "line 1, column 48: above must be given once; got it twice"),
        (f"{BEGUN} WHERE time IN LAST 2 DAYS AND time IN LAST 3 DAYS", "line 1, .*: last_s must be given once"),
        (
            f"{BEGUN} WHERE within(BOX (1 1, 2 2)) AND within(BOX (1 1, 3 3))",
            "line 1, column 65: the place must be given once; got it twice",
        ),
        ("SELECT contains(key, 'a', 'b') FROM weather", "line 1, column 27: text must be given once; got it twice"),
        (" " * (MAX_CHARACTERS + 1), "a query must have at most 100,000 characters; got 100,001"),
    ],
)
def test_what_breaks_the_grammar_is_told_with_its_line_and_column(text, message):
    with pytest.raises(InvalidPlan, match=message):
        document_of(text)


@given(
    st.integers(0, len(SHOWN)), st.integers(0, 12), st.sampled_from(["", "(", "'", "x", "\N{SNOWMAN}", "AND", '"', "0"])
)
def test_a_text_with_anything_cut_out_or_put_in_is_read_or_refused(place, length, put):
    changed = SHOWN[:place] + put + SHOWN[place + length :]
    try:
        document = document_of(changed)
    except InvalidPlan:
        return
    assert document_of(text_of(document)) == document


def test_a_text_with_a_thousand_vertices_is_read():
    ring = ", ".join(f"{i} {i}" for i in range(1_000))
    assert len(document_of(f"{BEGUN} WHERE within(POLYGON (({ring})))")["polygon"]) == 1_000

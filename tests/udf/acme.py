"""The filters of another package, as if it were installed."""

from importlib.metadata import EntryPoint

import pytest

from streaming import entry_points
from streaming.udf import GROUP, filter_of

# What is said of each wrong filter, asked about three rows.
WRONG = {
    "raises": "KeyError: 'altitude'",
    "picky": "KeyError: 'altitude'",
    "too_short": "shape (3,); got an array of bool of shape (2,)",
    "numbers": "array of bool of shape (3,); got an array of float64",
    "lists": "array of bool of shape (3,); got list",
    "nothing": "array of bool of shape (3,); got NoneType",
    "square": "got an array of bool of shape (3, 1)",
    "unmade": "must be a filter that loads; got 'unmade': OSError: no licence",
    "methodless": "AttributeError",
    "absent": "must be a filter that loads; got 'absent': AttributeError",
    "unknown": "udf must be one of",
}


@pytest.fixture
def acme(monkeypatch):
    """Install the package."""
    names = [name for name in WRONG if name != "unknown"] + ["good"]
    places = {name: f"tests.udf.wrong:{name.title().replace('_', '')}" for name in names}
    places["key_equals"] = "tests.udf.wrong:Raises"
    offered = {name: EntryPoint(name, place, GROUP) for name, place in places.items()}
    monkeypatch.setattr(entry_points, "_offered", lambda group: offered if group == GROUP else {})
    filter_of.cache_clear()
    yield
    filter_of.cache_clear()

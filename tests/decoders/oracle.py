"""What is sound of an element, written plainly and one by one."""

import json
import math

import shapely

from streaming.elements import UNKNOWN, element_schema

LATEST_US = 7_258_118_400_000_000  # 2200-01-01


def _refuse(constant):
    raise ValueError(constant)


def check_properties(value, depth=1):
    """Assert that a value of a JSON document can be written, stored and shown anywhere."""
    assert depth <= 33
    if isinstance(value, dict | list):
        for name in value if isinstance(value, dict) else ():
            check_properties(name)
            assert len(name) <= 1_000
        for inner in value.values() if isinstance(value, dict) else value:
            check_properties(inner, depth + 1)
    elif isinstance(value, str):
        assert "\0" not in value
        assert len(value) <= 10_000
        value.encode()  # no lone surrogate
    elif isinstance(value, float):
        assert math.isfinite(value)


def check_box(bounds, space):
    """Assert that a box lies within a space."""
    for axis, dimension in enumerate(space.dimensions):
        lo, hi = bounds[axis], bounds[space.n + axis]
        assert lo <= hi
        if axis > 1 and lo == hi == UNKNOWN:
            continue
        assert lo == -math.inf or dimension.lo <= lo <= dimension.hi
        most = dimension.hi + dimension.extent if dimension.wraps else dimension.hi
        assert hi == math.inf or dimension.lo <= hi <= most


def check_elements(elements, space):
    """Assert that all elements of a table are sound."""
    assert elements.schema == element_schema(space)
    for row in elements.to_pylist():
        assert 1 <= len(row["key"].encode()) <= 1_000
        assert "\0" not in row["key"]
        assert 0 <= row["time_us"] < LATEST_US
        check_box(row["bounds"], space)
        properties = json.loads(row["properties"], parse_constant=_refuse)
        assert isinstance(properties, dict)
        assert len(properties) <= 1_000
        assert len(row["properties"].encode()) <= 100_000
        check_properties(properties)
        if row["geometry"] is not None:
            assert not shapely.from_wkb(row["geometry"]).is_empty

"""Options are checked with the rule and the value."""

import pytest

from streaming.decoders import make_decoder
from streaming.errors import InvalidOptions

COLUMNS = {"key": "k", "lon": "x", "lat": "y"}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        (None, "a decoder must be an object like"),
        ({}, "a decoder's kind must be one of ais, .*; got None"),
        ({"kind": "xml"}, "a decoder's kind must be one of ais, .*; got 'xml'"),
        ({"kind": ["ais"]}, "a decoder's kind must be one of"),
        ({"kind": "ais", "speed": 1}, "may only have time_source, .*; got 'speed'"),
        ({"kind": "ais", "time_source": "moon"}, "time_source must be one of auto, .*; got 'moon'"),
        ({"kind": "ais", "check_checksum": 1}, "check_checksum must be true or false; got 1"),
        ({"kind": "ais", "max_objects": 0}, "max_objects must be at least 1; got 0"),
        ({"kind": "ais", "max_objects": True}, "max_objects must be a whole number; got True"),
        ({"kind": "sbs", "utc_offset_s": float("nan")}, "utc_offset_s must be a finite number; got nan"),
        ({"kind": "geojson", "key": 5}, "key must be a text; got 5"),
        ({"kind": "geojson", "properties": {"a": 1}}, r"properties\['a'\] must be a name or .*; got 1"),
        (
            {"kind": "geojson", "properties": {"s": {"name": "v", "unit": []}}},
            r"unit must be one of number, .*; got \[\]",
        ),
        ({"kind": "geojson", "null_values": {"a": [None]}}, r"null_values\['a'\] must be a list of texts or numbers"),
        ({"kind": "geojson", "framing": "xml"}, "framing must be one of lines, sequence, document; got 'xml'"),
        ({"kind": "csv", "columns": []}, "columns must be an object"),
        ({"kind": "csv", "columns": {"key": "k"}}, "columns must have lon"),
        ({"kind": "csv", "columns": COLUMNS | {"speed": "s"}}, "columns may only have key, .*; got 'speed'"),
        ({"kind": "csv", "header": "k,x", "columns": COLUMNS}, "header must have the column of lat, y; got 'k,x'"),
        ({"kind": "csv", "properties": {"s": {"unit": "knots"}}}, r"properties\['s'\] must be a name or"),
        (
            {"kind": "csv", "properties": {"s": {"name": "v", "unit": "warp"}}},
            r"unit must be one of number, .*; got 'warp'",
        ),
        ({"kind": "csv", "null_values": {"s": "511"}}, r"null_values\['s'\] must be a list of texts; got '511'"),
        ({"kind": "csv", "delimiter": "::"}, "delimiter must be one ASCII character; got '::'"),
        ({"kind": "csv", "time_format": "julian"}, "time_format must be one of"),
    ],
)
def test_wrong_options_are_refused_with_the_rule_and_the_value(definition, message):
    with pytest.raises(InvalidOptions, match=message):
        make_decoder(definition, "s")

"""docs/spaces.md tells of every key of a space, and its examples are what they are said to be."""

import json
import re
from pathlib import Path

import pytest

from streaming.decoders import make_decoder
from streaming.plans import parse_plan, plan_document
from streaming.spaces import DIMENSION_KEYS, MAX_DIMENSIONS, SPACE_KEYS, parse_space

TEXT = (Path(__file__).parents[2] / "docs" / "spaces.md").read_text()
EXAMPLES = [json.loads(example) for example in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]
SPACES = [parse_space({"name": f"s{n}", **found}) for n, found in enumerate(EXAMPLES) if "dimensions" in found]


@pytest.mark.parametrize("word", [*SPACE_KEYS, *DIMENSION_KEYS])
def test_every_key_is_described(word):
    assert f"`{word}`" in TEXT or word == "name"
    assert f"1 to {MAX_DIMENSIONS}" in TEXT


def test_the_examples_fit_each_other():
    prices, boxes = SPACES
    shares, ranges = (found for found in EXAMPLES if "kind" in found)
    line = re.search(r"`(AAPL,.*?)` a line", TEXT)[1]
    decoded = make_decoder(shares, "shares", prices).feed(f"{line}\n".encode(), 0)
    assert decoded.elements["bounds"].to_pylist() == [[180.25, 180.25]]
    assert make_decoder(ranges, "boxes", boxes)
    (plan,) = (found for found in EXAMPLES if "stream" in found)
    parsed = parse_plan(plan, prices)
    assert parse_plan(plan_document(parsed, prices), prices) == parsed

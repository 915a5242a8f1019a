"""docs/plans.md tells of every key of a plan, and its examples are plans."""

import json
import re
from pathlib import Path

import pytest

from streaming.plans import EMITS, ENLARGEMENTS, REPORTS, parse_plan, plan_document
from streaming.plans.documents import RANGE_KEYS

TEXT = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()


@pytest.mark.parametrize("word", [*RANGE_KEYS, *REPORTS, *EMITS, *ENLARGEMENTS])
def test_every_word_of_a_plan_is_described(word):
    assert f"`{word}`" in TEXT or f'"{word}"' in TEXT


@pytest.mark.parametrize("example", re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL))
def test_every_example_is_a_plan(example):
    plan = parse_plan(json.loads(example))
    assert parse_plan(plan_document(plan)) == plan


@pytest.mark.parametrize("filter_text", re.findall(r"^\* `(.*)`$", TEXT, re.MULTILINE))
def test_every_filter_shown_parses(filter_text):
    assert parse_plan({"stream": "ships", "area": {"lo": [0], "hi": [1]}, "where": filter_text}).where == filter_text

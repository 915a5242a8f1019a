"""docs/plans.md tells of every key of a plan, and its examples are plans."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import shapely
from jsonschema import Draft202012Validator

from streaming.kinds import declared
from streaming.kinds.aggregate.plan import FUNCTIONS, Aggregate, Threshold
from streaming.kinds.around import FOCUS_KEYS, SHAPES
from streaming.kinds.fields import EMITS
from streaming.kinds.join.partners import PARTNERS_KEYS, PREDICATES
from streaming.kinds.parts import ENLARGEMENTS
from streaming.kinds.range.plan import REPORTS
from streaming.kinds.registry import KINDS
from streaming.plans import QueryPlanBuilder, parse_plan, plan_document
from streaming.plans.schema import plan_schema
from streaming.spaces import EARTH, Dimension, Space
from streaming.udf import BUILT_IN
from tests.udf.batches import batch

TEXT = (Path(__file__).parents[2] / "docs" / "plans.md").read_text()

EXAMPLES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
RECIPES = re.findall(r"```json\n(.*?)```\n\n```python\n(.*?)```", TEXT.split("## Recipes")[1], re.DOTALL)
SPACES = {"shares": Space("prices", (Dimension("price", "EUR", 0, 1_000_000),))}
KEYS = (*(key for kind in KINDS if kind.name not in ("aggregate", "sketch") for key in kind.keys), *PARTNERS_KEYS)
PARTS = (*FOCUS_KEYS, *SHAPES, *declared.keys_of(Aggregate), *declared.keys_of(Threshold), *FUNCTIONS)
WORDS = dict.fromkeys(
    [*KEYS, *PARTS, *(kind.written for kind in KINDS), *REPORTS, *EMITS, *ENLARGEMENTS, *PREDICATES, *BUILT_IN]
)
METHODS = [name for name in vars(QueryPlanBuilder) if not name.startswith("_")]


def plan_of(example):
    """Return the plan of an example, in the space of its stream, and the space."""
    document = json.loads(example)
    space = SPACES.get(document["stream"], EARTH)
    return parse_plan(document, space), space


def recipes(title):
    """Return the plans of a recipe, as JSON documents."""
    section = re.split("^#+ ", TEXT.split(f"### {title}\n")[1], flags=re.MULTILINE)[0]
    return [json.loads(example) for example in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]


@pytest.mark.parametrize("word", WORDS)
def test_every_word_of_a_plan_is_described(word):
    assert f"`{word}`" in TEXT or f'"{word}"' in TEXT


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_builder_is_described(method):
    assert re.search(rf"`(QueryPlanBuilder\.)?{method}[(`]", TEXT)


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_plan(example):
    plan, space = plan_of(example)
    assert parse_plan(plan_document(plan, space), space) == plan
    Draft202012Validator(plan_schema()).validate(json.loads(example))


def test_every_recipe_is_there_as_json_and_with_the_builder():
    recipes = TEXT.split("## Recipes")[1]
    assert len(RECIPES) == recipes.count("```json") == recipes.count("```python")


@pytest.mark.parametrize(("example", "snippet"), RECIPES)
def test_the_builder_of_a_recipe_builds_its_plan(example, snippet):
    names = {"QueryPlanBuilder": QueryPlanBuilder}
    exec(snippet, names)
    assert names["plan"] == plan_of(example)[0]


def test_the_filter_that_is_shown_judges():
    snippet = re.search(r"```python\n(import numpy.*?)```", TEXT, re.DOTALL)[1]
    names = {}
    exec(snippet, names)
    (shown,) = (value for value in names.values() if hasattr(value, "filter_pair"))
    elements = batch(np.array([shapely.Point(0, 0), shapely.box(0, 0, 1, 1)]))
    assert shown().filter_element(elements, "1").tolist() == [False, True]
    assert shown().filter_pair(elements, elements, "1").tolist() == [False, True]


@pytest.mark.parametrize("filter_text", re.findall(r"^\* `(.*)`$", TEXT, re.MULTILINE))
def test_every_filter_shown_parses(filter_text):
    assert parse_plan({"stream": "ships", "area": {"lo": [0], "hi": [1]}, "where": filter_text}).where == filter_text

"""docs/sketch-queries.md tells of every key and every question, and its examples are plans, as JSON and as text."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from streaming.kinds import declared
from streaming.kinds.schema import shared_definitions
from streaming.kinds.sketch.asks import ASK_KEYS, CONTRASTED, EVERY, FORMS, KEY, STATISTICS
from streaming.kinds.sketch.grammar import WORDS
from streaming.kinds.sketch.kind import SketchKind
from streaming.kinds.sketch.plan import SketchPlan
from streaming.kinds.sketch.reading import document_of
from streaming.kinds.sketch.selection import FeatureRange, Other
from streaming.kinds.sketch.times import TIMES_KEYS
from streaming.sketch.inference.registry import GROUP, model_names
from streaming.sketch.inference.series import MeanSeries
from streaming.spaces import EARTH

TEXT = (Path(__file__).parents[2] / "docs" / "sketch-queries.md").read_text()
EXAMPLES = re.findall(r"```json\n(.*?)```\n\n```sql\n(.*?)```", TEXT, re.DOTALL)
NAMES = [
    *(key for part in (SketchPlan, Other, FeatureRange) for key in declared.keys_of(part)),
    *TIMES_KEYS,
    *ASK_KEYS,
    *FORMS,
    *STATISTICS,
    *CONTRASTED,
    *EVERY,
    KEY,
]
LANGUAGE = re.split("^## ", TEXT.split("\n## Text\n")[1], flags=re.MULTILINE)[0]
KEYWORDS = [name.strip("_") for name in WORDS if name.strip("_") == WORDS[name]]
KIND = SketchKind()
SCHEMA = {**KIND.definition(), "$defs": {**KIND.definitions(), **shared_definitions()}}


@pytest.mark.parametrize("name", dict.fromkeys([*NAMES, *model_names(), GROUP]))
def test_every_key_question_and_model_is_described(name):
    assert f"`{name}`" in TEXT


@pytest.mark.parametrize("word", KEYWORDS)
def test_every_word_of_the_language_is_shown(word):
    assert re.search(rf"\b{word}\b", LANGUAGE, re.IGNORECASE)


@pytest.mark.parametrize(("document", "text"), EXAMPLES)
def test_an_example_is_the_same_plan_as_json_and_as_text(document, text):
    document = json.loads(document)
    plan = KIND.parse(document, EARTH)
    assert KIND.parse(document_of(text), EARTH) == plan
    assert KIND.parse(KIND.document(plan, EARTH), EARTH) == plan
    Draft202012Validator(SCHEMA).validate(document)


def test_every_example_is_there_twice_and_every_question_has_one():
    assert len(EXAMPLES) == TEXT.count("```json") == TEXT.count("```sql")
    shown = {ask["question"] for document, _ in EXAMPLES for ask in json.loads(document)["ask"]}
    assert shown == set(FORMS)


def test_the_model_that_is_shown_forecasts():
    names = {"np": np}
    exec(re.search(r"```python\n(class LastMean.*?)```", TEXT, re.DOTALL)[1], names)
    model = names["LastMean"]()
    steps = MeanSeries(np.arange(50) * 3_600_000_000, np.random.default_rng(0).normal(size=50), 3_600_000_000)
    state = model.learn_many(model.begin(steps.every_us), steps)
    value, low, high = model.predict(state, 3, 0.9).T
    assert (low <= high).all() and (value == steps.mean[-1]).all()

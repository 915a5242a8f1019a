"""docs/sketches.md tells of every setting and every function, and its example runs."""

import re
from dataclasses import MISSING, fields
from datetime import date, time
from pathlib import Path

import numpy as np
import pytest

from streaming.sketch import density, statistics
from streaming.sketch.leaves import no_leaves
from streaming.sketch.observations import Observations
from streaming.sketch.settings import InvalidSketch, Plane, SketchSettings, parse_settings, settings_document
from streaming.sketch.sketch import Sketch, add

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "sketches.md").read_text()
FEATURES = ("TEMP", "WSPM")
STATISTICS = ("count", "mean", "std", "minimum", "maximum", "correlation")
DENSITY = ("integral", "probability", "quantiles", "outliers")


@pytest.mark.parametrize(
    "setting", [field for field in fields(SketchSettings) if field.name != "space"], ids=lambda f: f.name
)
def test_every_setting_is_told_with_its_default(setting):
    row = re.search(rf"^\| `{setting.name}` \| (.*?) \|", TEXT, re.MULTILINE)
    assert row, setting.name
    if isinstance(setting.default, int) and setting.name != "time_bin_us":
        assert row[1] == f"{setting.default:,}"
    assert (setting.default is MISSING) == (row[1] == "required")


def test_every_file_and_function_is_told():
    for path in (ROOT / "streaming" / "sketch").glob("*.py"):
        assert path.name in TEXT or path.name in ("__init__.py", "observations.py"), path.name
    for module, names in ((statistics, STATISTICS), (density, DENSITY)):
        for name in names:
            assert callable(getattr(module, name))
            assert f"`{name}`" in TEXT or f".{name}`" in TEXT, name


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    drawn = np.random.default_rng(0)
    place = drawn.uniform([[116.0], [39.5]], [[117.0], [40.5]], (2, 500))
    june = 1_370_000_000_000_000
    elements = Observations(june + drawn.integers(0, 60 * 86_400_000_000, 500), place, drawn.uniform(0, 9, (2, 500)))
    sketch = add(Sketch.empty(SketchSettings(FEATURES)), elements)
    known = {"date": date, "time": time, "sketch": sketch}
    exec(example, known)
    answer = known["answer"]
    assert answer.low <= answer.value <= answer.high and answer.basis.elements > 0


@pytest.mark.parametrize("comoments", [(), ("a", "b", "c")])
def test_a_leaf_takes_as_many_bytes_as_the_page_says(comoments):
    settings = SketchSettings(("a", "b", "c"), comoments=comoments)
    elements = Observations(np.zeros(1, dtype=np.int64), np.zeros((2, 1)), np.ones((3, 1)))
    leaves = add(Sketch.empty(settings), elements).leaves()
    told = re.search(r"A leaf takes (\d+) bytes, (\d+) for each feature .*?, and (\d+) for each pair", TEXT)
    base, feature, pair = map(int, told.groups())
    assert leaves.nbytes == base + 3 * feature + len(comoments) * pair
    assert no_leaves(settings).nbytes == 0


def test_settings_are_the_same_after_a_round_trip_and_wrong_ones_are_refused():
    settings = SketchSettings(
        FEATURES, (Plane("TEMP", 8), Plane("WSPM", error=0.01)), comoments=FEATURES, study_us=10**12
    )
    assert parse_settings(settings_document(settings)) == settings
    wrong = [
        None,
        {},
        {"features": []},
        {"features": ["a", "a"]},
        {"features": "a"},
        {"features": ["a"], "colour": 1},
        {"features": ["a"], "planes": [{"feature": "b"}]},
        {"features": ["a"], "planes": [{"feature": "a", "bins": 255}]},
        {"features": ["a"], "planes": {"feature": "a"}},
        {"features": ["a"], "planes": [{"feature": "a", "error": 0}]},
        {"features": ["a"], "planes": [{"feature": "a", "error": "0.5 %"}]},
        {"features": ["a"], "cell_bits": 49},
        {"features": ["a"], "time_bin_us": 1},
        {"features": ["a"], "comoments": ["b"]},
        {"features": ["a"], "axes": [0, 0]},
        {"features": ["a"], "study_us": 1},
        {"features": ["a"], "first": True},
    ]
    for document in wrong:
        with pytest.raises(InvalidSketch):
            parse_settings(document)

"""docs/history.md says what the history does: its example runs, its words and numbers are those of the code."""

import json
import re
from pathlib import Path

import numpy as np
import shapely

from streaming.elements import point_elements
from streaming.history import snapshots, writer
from streaming.history.rows import part_schema
from streaming.kinds.join.plan import JoinPlan
from streaming.layers import LayerStore, feature_table
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.history.test_tables import keep

TEXT = (Path(__file__).parents[2] / "docs" / "history.md").read_text()
(CODE,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)


def test_the_example_answers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    times = 1_795_246_000_000_000 + np.arange(20) * 60_000_000
    places = np.tile([24.95, 60.15], (20, 1))
    keep(tmp_path / "var" / "history", point_elements("buses", ["bus 7"] * 20, times, places, [{}] * 20))
    square = feature_table("districts", ["d"], [shapely.box(24.9, 60.1, 25, 60.1499)], [{}])
    LayerStore(tmp_path / "var" / "layers").write("districts", square)
    names: dict = {}
    exec(CODE, names)
    tables, box, hour = names["tables"], names["box"], names["hour"]
    assert tables.get(names["stored"]("buses"), "bus 7").rows.num_rows == 20
    assert tables.query_by_box(names["stored"]("buses"), box, hour).rows.num_rows == 20
    assert names["near"].rows["partner_key"].to_pylist() == ["d"] * 20


def test_every_column_and_number_is_told():
    for name in part_schema(EARTH).names:
        assert f"`{name}`" in TEXT or int(name[-1]) > 1 or name == "hi_1"
    assert f"{writer.MERGE_ROWS:,}" in TEXT and writer.MERGE_AFTER_S == 60
    assert snapshots.MOST_ROWS == 1_000_000


def test_the_join_is_a_plan():
    document = re.search(r'^`(\{"stream": "taxis".*?\})` pairs', TEXT, re.M).group(1)
    plan = parse_plan(json.loads(document))
    assert isinstance(plan, JoinPlan) and (plan.partners.source, plan.partners.layer) == ("stored", "stored:buses")

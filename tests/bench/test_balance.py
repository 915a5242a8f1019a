"""The balance of partitioners over a recording."""

import numpy as np

from bench.balance import deviations, places_of, rows_of
from streaming.operators.region_map import RegionMap
from streaming.spaces import EARTH


def test_a_recording_is_read_in_the_order_of_its_times_and_shared_by_every_partitioner(tmp_path):
    path = tmp_path / "ships.csv"
    rng = np.random.default_rng(1)
    rows = [f"{rng.normal(20, 3):.4f},{rng.normal(50, 3):.4f},{time}" for time in range(1000, 4000)]
    path.write_text("\n".join(["LON,LAT,BaseDateTime", *rows[::-1], "0,0,1", "200,10,2", "10,,3"]))
    places = places_of(path)
    assert places.shape == (3000, 3) and places[0, 0] == float(rows[0].split(",")[0])
    told = rows_of(path)
    assert sum(line.startswith("| ") for line in told) == 9
    assert any(line.startswith("| kd | first 1,000 |") for line in told)


def test_deviations_are_parts_of_the_mean():
    places = np.column_stack([np.repeat([-90.0, 90.0], [10, 30]), np.zeros(40), np.zeros(40)])
    by_node, by_region = deviations(RegionMap.grid(EARTH, 2), places)
    assert by_region == 0.5 and by_node > 1

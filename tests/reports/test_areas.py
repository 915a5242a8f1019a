"""The areas of queries, as reports take them, are those that the engine evaluates."""

import numpy as np
import pytest

from streaming.kinds.areas import AreaFilter, CircleArea, CorridorArea, PolygonArea
from streaming.operators.areas import Areas
from streaming.reports import InvalidReport, drawn_area
from streaming.spaces import EARTH

RING = ((24.0, 59.0), (25.0, 59.2), (24.5, 60.0), (24.0, 59.0))
SHAPES = [
    PolygonArea(((RING,),)),
    CircleArea((24.5, 60.0), 20_000.0),
    CircleArea((179.95, -16.0), 30_000.0),
    CorridorArea(((24.0, 59.5), (24.6, 60.2), (25.4, 60.1)), 8_000.0),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_places_are_in_a_drawn_area_if_the_engine_finds_them_there(shape):
    area, rng = drawn_area(shape), np.random.default_rng(1)
    west, south, east, north = area.bounds
    lon, lat = rng.uniform(west - 0.2, east + 0.2, 4_000), rng.uniform(south - 0.2, north + 0.2, 4_000)
    lon = (lon + 180.0) % 360.0 - 180.0
    bounds = np.full((len(lon), 6), np.nan)
    bounds[:, [0, 1]] = bounds[:, [3, 4]] = np.stack([lon, lat], axis=1)
    bounds[:, [2, 5]] = 0.0
    rows = np.arange(len(lon))
    met = Areas([AreaFilter(shape)], EARTH).met_by_boxes(bounds, rows, np.zeros_like(rows))
    assert 200 < met.sum() < 3_800
    # Of circles and corridors, places within some metres of the border may differ.
    assert (met != area.contains(lon, lat)).sum() <= (0 if isinstance(shape, PolygonArea) else 4)


def test_an_area_with_a_pole_is_refused():
    with pytest.raises(InvalidReport, match="must not contain a pole"):
        drawn_area(CircleArea((0.0, 89.9), 50_000.0))

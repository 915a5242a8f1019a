"""The fine coast of the built-in map: cells cut out of shorelines."""

import gzip
import json

import numpy as np
import pytest
import shapely
from django.urls import reverse

from webapp.pages import coast
from webapp.pages.coast import CELL_DEG, OVERLAP_DEG, STEP_DEG, Shorelines, rings_of


def lines(*rings):
    """Return shorelines of closed rings of longitudes and latitudes."""
    points = np.array([place for ring in rings for place in ring], dtype="<f4")
    boxes = np.array([[*np.min(ring, axis=0), *np.max(ring, axis=0)] for ring in rings])
    return Shorelines(points, np.cumsum([0, *map(len, rings)]), boxes)


def square(west, south, side):
    return shapely.get_coordinates(shapely.box(west, south, west + side, south + side))


def is_land(rings, corner, place):
    """Tell whether a place lies in an odd number of the rings of a cell."""
    shapes = [shapely.Polygon(np.cumsum(np.reshape(ring, (-1, 2)), axis=0) * STEP_DEG + corner) for ring in rings]
    return sum(shape.contains(shapely.Point(place)) for shape in shapes) % 2 == 1


CONTINENT, LAKE, ISLAND = square(-5, -5, 10), square(0.2, 0.2, 0.6), square(0.4, 0.4, 0.2)
SHORES = lines(CONTINENT, LAKE, ISLAND)


def test_what_lies_in_an_odd_number_of_rings_is_land():
    rings = list(rings_of(SHORES, 0, 0))
    for place, land in (((0.1, 0.1), True), ((0.3, 0.3), False), ((0.5, 0.5), True), ((0.95, 0.95), True)):
        assert is_land(rings, (0, 0), place) == land
    assert list(rings_of(SHORES, 20, 20)) == []


def test_neighbouring_cells_overlap_so_that_no_gap_is_between_them():
    west, east = list(rings_of(SHORES, -1, 0)), list(rings_of(SHORES, 0, 0))
    seam = (OVERLAP_DEG / 2, 0.1)
    assert is_land(west, (-1, 0), seam) and is_land(east, (0, 0), seam)
    widest = max(max(np.cumsum(ring[::2])) for ring in west)
    assert widest == round((CELL_DEG + OVERLAP_DEG) / STEP_DEG)


def test_places_are_kept_to_a_step():
    rng = np.random.default_rng(5)
    angles = np.sort(rng.uniform(0, 2 * np.pi, 300))
    ring = np.column_stack([0.5 + 0.3 * np.cos(angles), 0.5 + 0.3 * np.sin(angles)])
    [found] = rings_of(lines(np.vstack([ring, ring[:1]])), 0, 0)
    places = np.cumsum(np.reshape(found, (-1, 2)), axis=0) * STEP_DEG
    far = shapely.distance(shapely.points(places), shapely.LineString(np.vstack([ring, ring[:1]])))
    assert far.max() < STEP_DEG


@pytest.mark.django_db
def test_a_cell_is_for_users_and_there_is_none_beyond_the_world(client, django_user_model, monkeypatch):
    monkeypatch.setattr(coast, "shorelines", lambda: SHORES)
    coast.packed.cache_clear()
    address = reverse("coast", args=["0_0"])
    assert client.get(address).status_code == 401
    client.force_login(django_user_model.objects.create_user("ada"))
    answer = client.get(address)
    assert (answer.status_code, answer["Content-Encoding"]) == (200, "gzip")
    assert json.loads(gzip.decompress(answer.content)) == list(rings_of(SHORES, 0, 0))
    assert client.get(reverse("coast", args=["index"])).json()["cell"] == CELL_DEG
    for name in ("180_0", "0_90", "-181_0", "0", "x_y", "1_2_3"):
        assert client.get(reverse("coast", args=[name])).status_code == 404
    coast.packed.cache_clear()


@pytest.mark.long
def test_the_installed_shorelines_have_the_rock_of_gibraltar_and_the_strait():
    shores = coast.shorelines()
    assert shores is not None
    rings = list(rings_of(shores, -6, 36))
    for place, land in (
        ((-5.345, 36.13), True),
        ((-5.39, 36.13), False),
        ((-5.5, 36.02), False),
        ((-5.6, 36.15), True),
    ):
        assert is_land(rings, (-6, 36), place) == land

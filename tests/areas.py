"""Random areas about places, as documents of plans."""

import math

import shapely


def random_area(rng, lon, lat, size_deg):
    """A polygon, with a hole or a second one now and then, a circle or a corridor about a place, as JSON."""
    metres = size_deg * rng.uniform(20_000.0, 100_000.0)
    form = rng.choice(["polygon", "polygon", "circle", "corridor"])
    if form == "circle":
        return {"circle": {"center": [lon, lat], "radius_m": metres}}
    if form == "corridor":
        count, first = rng.randint(2, 5), lon
        line = [[first + rng.uniform(-size_deg, size_deg), near(rng, lat, size_deg)] for _ in range(count)]
        return {"corridor": {"line": within_turn(line), "width_m": metres / 2}}
    outer = star(rng, lon, lat, size_deg)
    if rng.random() < 0.3:
        inner = [[lon + (x - lon) * 0.4, lat + (y - lat) * 0.4] for x, y in outer]
        return checked({"type": "Polygon", "coordinates": [outer, inner]})
    if rng.random() < 0.2:
        other = [[x + 2.5 * size_deg, y] for x, y in outer]
        return checked({"type": "MultiPolygon", "coordinates": [[outer], [other]]})
    return checked({"type": "Polygon", "coordinates": [outer]})


def near(rng, lat, size_deg):
    return min(90.0, max(-90.0, lat + rng.uniform(-size_deg, size_deg)))


def star(rng, lon, lat, size_deg):
    """A closed ring about a place, simple since it turns about it; its corners may lie on a grid of degrees."""
    angles = sorted(rng.sample(range(24), rng.randint(4, 9)))
    reach = [size_deg * rng.choice([0.5, 1.0, rng.random() + 0.1]) for _ in angles]
    ring = [
        [lon + r * math.cos(a * math.tau / 24), lat + r * math.sin(a * math.tau / 24)]
        for a, r in zip(angles, reach, strict=True)
    ]
    if rng.random() < 0.3:
        ring = [[lon - size_deg, lat - size_deg], [lon + size_deg, lat - size_deg], [lon, lat + size_deg]]
    ring = [[x, min(90.0, max(-90.0, y))] for x, y in ring]
    return [*ring, ring[0]]


def within_turn(places):
    """Places moved by a turn, such that the least longitude lies within the space."""
    least = min(x for x, _ in places)
    turn = 360.0 if least < -180 else -360.0 if least > 180 else 0.0
    return [[x + turn, y] for x, y in places]


def checked(document):
    """A document of polygons, moved into the space; a plain triangle if the rings have become invalid at a pole."""
    polygons = [document["coordinates"]] if document["type"] == "Polygon" else document["coordinates"]
    flat = within_turn([place for rings in polygons for ring in rings for place in ring])
    rest = iter(flat)
    moved = [[[next(rest) for _ in ring] for ring in rings] for rings in polygons]
    geometry = shapely.MultiPolygon([(rings[0], rings[1:]) for rings in moved])
    if not geometry.is_valid or geometry.area == 0:
        x, y = min(flat[0][0], 179.0), min(flat[0][1], 89.0)
        return {"type": "Polygon", "coordinates": [[[x, y], [x + 1, y], [x, y + 1], [x, y]]]}
    coordinates = moved[0] if document["type"] == "Polygon" else moved
    return {"type": document["type"], "coordinates": coordinates}

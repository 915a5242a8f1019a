"""Reports by brute force: one fix after the other, in plain Python, with the definitions of docs/reports.md."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta

import shapely
from pyproj import Geod

GEOD = Geod(ellps="WGS84")


def tracks_of(rows):
    """Return the fixes of each key, by time, given rows (key, time, lon, lat) that were received at the same moment."""
    places = defaultdict(dict)
    for key, time, lon, lat in rows:
        places[key][time] = max((lon, lat), places[key].get(time, (lon, lat)))
    return {key: [(time, *place) for time, place in sorted(of.items())] for key, of in sorted(places.items())}


def metres(one, other):
    """Return the length of the geodesic between two fixes."""
    return GEOD.inv(*one[1:], *other[1:])[2]


def turned(fix, polygon):
    """Return a fix as a point of the polygon's plane, None if it does not lie in the polygon."""
    for turn in (0, 360, -360):
        point = shapely.Point(fix[1] + turn, fix[2])
        if polygon.intersects(point):
            return point
    return None


def crossing(outside, inside, polygon):
    """Return when an object crossed the border of a polygon between a fix outside and one inside."""
    end = turned(inside, polygon)
    lon = min((outside[1] + turn for turn in (-720, -360, 0, 360, 720)), key=lambda lon: abs(lon - end.x))
    segment = shapely.LineString([(lon, outside[2]), end])
    pieces = shapely.get_parts(segment.intersection(polygon))
    within = sum(piece.length for piece in pieces if piece.distance(end) == 0)
    return outside[0] + (1 - within / segment.length) * (inside[0] - outside[0])


def visits(track, polygon, gap):
    """Return the visits of a track, each as a dict; `path` is its fixes with those outside before and after it."""
    found, current = [], None
    for at, fix in enumerate(track):
        linked = at > 0 and fix[0] - track[at - 1][0] <= gap
        inside = polygon is None or turned(fix, polygon) is not None
        if current and not (linked and inside):
            exit_ = linked and not inside
            current["ended"] = "exit" if exit_ else "gap"
            current["end"] = crossing(fix, track[at - 1], polygon) if exit_ else track[at - 1][0]
            current["path"] += [fix] * exit_
            found.append(current)
            current = None
        if inside and current is None:
            entered = linked  # the fix before lies outside, else there would be a visit
            began = "entry" if entered else "gap" if at else "first"
            begin = crossing(track[at - 1], fix, polygon) if entered else fix[0]
            current = {"began": began, "begin": begin, "inside": [], "path": [track[at - 1]] * entered}
        if current:
            current["inside"].append(fix)
            current["path"].append(fix)
    if current:
        found.append(current | {"ended": "last", "end": track[-1][0]})
    return found


def way(visit, fastest):
    """Return the metres of a visit, and its jumps."""
    total, jumps = 0.0, 0
    for one, other in zip(visit["path"], visit["path"][1:], strict=False):
        length, seconds = metres(one, other), (other[0] - one[0]) / 1e6
        if length > fastest * seconds:
            jumps += 1
            continue
        begin, end = max(one[0], visit["begin"]), min(other[0], visit["end"])
        total += length * (end - begin) / (other[0] - one[0])
    return total, jumps


def stops(visit, radius, least):
    """Return the stops of a visit as lists of its fixes."""
    fixes, found = visit["inside"], []
    for at, fix in enumerate(fixes):
        later = next((to for to in range(at, len(fixes)) if fixes[to][0] - fix[0] >= least), None)
        if later is None or any(metres(fix, other) > radius for other in fixes[at : later + 1]):
            continue
        if found and at <= found[-1][1]:
            found[-1][1] = max(found[-1][1], later)
        else:
            found.append([at, later])
    return [fixes[first : last + 1] for first, last in found]


def minutes_by_day(begin, end, zone):
    """Return how many minutes of a span, of whole minutes in microseconds, lie on each date of a zone."""
    counted, minute = defaultdict(int), 60_000_000
    for instant in range(begin, end, minute):
        counted[date(instant, zone)] += 1
    return counted


def date(instant, zone):
    """Return the date of an instant in microseconds."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)
    return moment.astimezone(zone).date().isoformat()

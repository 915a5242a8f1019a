"""Files have at most 400 lines, but for those on a list that can only become shorter."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 400
WHERE = [
    *(("streaming", "*.py"), ("webapp", "*.py"), ("bench", "*.py"), ("tools", "*.py"), ("tests", "*.py")),
    *(("static/js", "*.js"), ("tests/js", "*.*js")),
]
ONE_THING = "the parts of one thing that are read together"
CASES = "tests of one module, with what they need in common"
# Files that are longer: how long they may be at most, in steps of 20 lines, and why they are one file.
# No number here may become larger.
LONGER: dict[str, tuple[int, str]] = {
    "static/js/queries/area-fields.js": (440, "one part of a form"),
    "static/js/map/canvas-layer.js": (500, "one layer of Leaflet"),
    "static/js/format.js": (460, "all texts that are made of values"),
    "static/js/main.js": (660, "what joins the parts of the page"),
    "streaming/kinds/sketch/asks.py": (460, "a small class for each question"),
    "streaming/layers/store.py": (420, ONE_THING),
    "streaming/operators/edges.py": (500, "one algorithm"),
    "streaming/operators/region_map.py": (420, "one tree, and what changes it"),
    "streaming/operators/stream_join.py": (480, "one algorithm"),
    "streaming/plans/builder.py": (460, "a function for each kind of query, for programs"),
    "streaming/servers/ways/moving/nearest.py": (520, ONE_THING),
    "streaming/servers/control/registry.py": (690, "the registry, and the one class that changes it"),
    "streaming/servers/ways/encounters/region.py": (520, ONE_THING),
    "streaming/servers/ways/time_joins/reports.py": (420, ONE_THING),
    "streaming/servers/sorted_runs.py": (500, ONE_THING),
    "streaming/servers/ways/tracks/following.py": (440, ONE_THING),
    "tests/engine/test_intervals.py": (440, CASES),
    "tests/engine/test_state_survives.py": (520, CASES),
    "tests/js/replay-stage.test.mjs": (420, CASES),
    "tests/layers/test_importing.py": (520, CASES),
    "tests/servers/test_closest_approaches.py": (500, CASES),
    "tests/servers/test_joins.py": (460, CASES),
    "tests/servers/test_levels.py": (440, CASES),
    "tests/servers/test_tracks.py": (480, CASES),
    "tests/webapp/test_access.py": (440, CASES),
    "tests/webapp/test_channels.py": (440, CASES),
    "tests/webapp/test_hub.py": (500, CASES),
    "tests/webapp/test_incidents.py": (640, CASES),
    "tests/webapp/test_layers.py": (760, CASES),
    "webapp/consumers/monitor.py": (560, "the consumer: a method for each message"),
}


def lengths() -> dict[str, int]:
    """Return how many lines each file has."""
    paths = (path for part, pattern in WHERE for path in (ROOT / part).rglob(pattern))
    return {path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines()) for path in paths}


def test_no_file_is_longer_than_it_may_be():
    found = {path: lines for path, lines in lengths().items() if lines > LONGER.get(path, (MOST,))[0]}
    assert found == {}, f"split what is two things; a file has {MOST} lines at most"


def test_the_list_of_longer_files_only_becomes_shorter():
    now = lengths()
    stale = {path: now.get(path) for path in LONGER if now.get(path, 0) <= MOST}
    assert stale == {}, "what is no longer than others leaves the list"

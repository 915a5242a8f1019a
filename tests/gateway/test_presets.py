import csv
import gzip

import orjson
import pytest

from streaming.decoders import make_decoder
from streaming.decoders.units import KNOT_MPS
from streaming.errors import InvalidOptions, LookoutError
from streaming.gateway import samples
from streaming.gateway.definitions import check_definition, read_definition
from streaming.gateway.presets import DEMO_STREAMS, FLIGHTS_DECODER
from streaming.gateway.samples import FLIGHTS, prepare_flights
from streaming.spaces import EARTH

STATES = [
    {"icao24": "b", "timestamp": 36_002_000, "longitude": 8.5, "latitude": 47.5, "altitude": 1000.0},
    {"icao24": "b", "timestamp": 36_005_000, "longitude": 8.6, "latitude": 47.5, "altitude": 1000.0},
    {"icao24": "a", "timestamp": 36_003_000, "longitude": 8.7, "latitude": 47.5, "altitude": 1000.0},
    {"icao24": "c", "timestamp": 0, "longitude": 8.7, "latitude": 47.5, "altitude": 1000.0},
]
REST = {"groundspeed": 100.0, "track": 90.0, "vertical_rate": 0.0, "callsign": "X"}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Put a package with four states where the sample's is looked for."""
    sample = tmp_path / "traffic" / samples._SAMPLE
    sample.parent.mkdir(parents=True)
    sample.write_bytes(gzip.compress(orjson.dumps([state | REST for state in STATES])))
    (tmp_path / "traffic" / "__init__.py").write_text("raise RuntimeError('only its data is wanted')")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("stream", DEMO_STREAMS, ids=lambda stream: stream["name"])
def test_every_preset_is_a_definition_that_can_run(stream):
    check_definition(read_definition(orjson.dumps(stream)), {"earth": EARTH})
    assert stream["icon"] in {"aircraft", "ship", "bus"}
    assert stream["title"]
    assert "simulated" not in stream["title"] and "×" not in stream["title"]  # chips say that


def test_only_the_presets_that_need_no_internet_are_on():
    assert {s["name"] for s in DEMO_STREAMS if s["enabled"]} == {"aircraft", "ships", "buses"}
    assert all((s["transport"]["kind"] == "http_poll") != s["enabled"] for s in DEMO_STREAMS)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{", "must be JSON"),
        (b"[]", "must be an object with name"),
        (b'{"name": "s", "space": "earth", "transport": {}}', "must be an object with name"),
        (b'{"name": "s", "space": "x", "transport": {}, "decoder": {}}', "space must be one of earth; got 'x'"),
        (
            b'{"name": "s", "space": "earth", "enabled": 1, "transport": {}, "decoder": {}}',
            "enabled must be true",
        ),
        (
            b'{"name": "s", "space": "earth", "stored": 1, "transport": {}, "decoder": {}}',
            "stored must be true",
        ),
        (
            b'{"name": "s", "space": "earth", "ttl_s": 0, "transport": {}, "decoder": {}}',
            "ttl_s must be null or",
        ),
        (b'{"name": "s", "space": "earth", "transport": {"kind": "stdin"}, "decoder": {}}', "decoder's kind must be"),
    ],
)
def test_a_definition_that_cannot_run_is_refused_with_its_rule(payload, message):
    with pytest.raises(InvalidOptions, match=message):
        check_definition(read_definition(payload), {"earth": EARTH})


def test_flights_of_the_busy_hours_are_sorted_by_time_and_written_once(package, tmp_path):
    target = prepare_flights(tmp_path / FLIGHTS)
    with gzip.open(target, "rt") as file:
        rows = list(csv.DictReader(file))
    assert [(row["icao24"], row["timestamp"]) for row in rows] == [("b", "36002"), ("a", "36003"), ("b", "36005")]
    written = target.stat().st_mtime_ns
    assert prepare_flights(target).stat().st_mtime_ns == written
    assert list(target.parent.iterdir()) == [target]


def test_the_demonstration_decodes_the_flights_it_prepares(package, tmp_path):
    content = gzip.decompress(prepare_flights(tmp_path / FLIGHTS).read_bytes())
    decoded = make_decoder(FLIGHTS_DECODER, "aircraft").feed(content, 0)
    assert decoded.malformed == ()
    assert decoded.elements["key"].to_pylist() == ["b", "a", "b"]
    properties = orjson.loads(decoded.elements["properties"][0].as_py())
    assert properties["speed_mps"] == pytest.approx(51.444, abs=0.001)
    assert "vertical_rate_mps" in properties
    assert decoded.elements["bounds"][0].as_py()[2] == pytest.approx(304.8)


def test_ships_of_digitraffic_have_speed_and_course_in_si_units():
    (preset,) = (stream for stream in DEMO_STREAMS if stream["name"] == "finnish_ais")
    answer = {"type": "FeatureCollection", "features": [ship(230_000_001, 10, 90), ship(230_000_002, 102.3, 360)]}
    decoder = make_decoder(preset["decoder"], "finnish_ais")
    assert decoder.feed(orjson.dumps(answer), 0).malformed == ()
    decoded = decoder.finish(0)
    known, unknown = map(orjson.loads, decoded.elements["properties"].to_pylist())
    assert decoded.elements["key"].to_pylist() == ["230000001", "230000002"]
    assert (known["speed_mps"], known["course_deg"], known["heading_deg"]) == (10 * KNOT_MPS, 90, 90)
    assert not unknown.keys() & {"speed_mps", "course_deg", "sog", "cog"}


def ship(mmsi, sog, cog):
    """A feature as Digitraffic writes it."""
    return {
        "mmsi": mmsi,
        "type": "Feature",
        "geometry": {"type": "Point", "coordinates": [20.85169, 55.770832]},
        "properties": {
            "mmsi": mmsi,
            "sog": sog,
            "cog": cog,
            "navStat": 1,
            "rot": 4,
            "posAcc": True,
            "raim": False,
            "heading": 90,
            "timestamp": 59,
            "timestampExternal": 1_659_212_938_646,
        },
    }


def test_flights_without_their_package_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "find_spec", lambda name: None)
    with pytest.raises(LookoutError, match="pip install --no-deps traffic"):
        prepare_flights(tmp_path / FLIGHTS)
    assert not (tmp_path / FLIGHTS).exists()

"""An object whose height is not known is in no range of heights, and in every range that has none."""

import numpy as np
import orjson
import pytest

from streaming.decoders.registry import make_decoder
from streaming.elements import UNKNOWN, bounds_document, bounds_of, box_of_document
from streaming.explaining import Subject
from streaming.explaining.places import box_terms
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH
from tests.servers.harness import Client, Engine, one

AROUND = {"lo": [-10, 50], "hi": [0, 60]}
LOW, HIGH, OPEN_ABOVE, OPEN_BELOW = (
    {"lo": [-10, 50, low], "hi": [0, 60, high]} for low, high in ((0, 500), (3000, 15000), (500, None), (None, 15000))
)
AIRCRAFT = [
    {"hex": "aaaaaa", "alt_baro": "ground"},
    {"hex": "bbbbbb", "alt_baro": 30000},
    {"hex": "cccccc", "gs": 300},
    {"hex": "dddddd", "alt_geom": 1000},
]


def sky(**options):
    """Return aircraft of which one is on the ground, and of one of which nobody knows how high it is."""
    made = make_decoder({"kind": "aircraft_json"} | options, "planes", EARTH)
    aircraft = [{"lat": 53.4, "lon": -6.2} | one for one in AIRCRAFT]
    data = orjson.dumps({"now": 1_795_751_000.0, "aircraft": aircraft})
    made.feed(data, 0)
    return "planes", 0, made.finish(0).elements


def answers(tmp_path, plans, *elements):
    """Return the keys in the answers of plans."""
    engine, client = Engine(tmp_path, 2, 4), Client()
    control = [
        {"op": "register", "query": number, "revision": 1, "plan": {"stream": "planes"} | plan}
        for number, plan in enumerate(plans)
    ]
    client.receive(engine.run([*elements], control))
    return ["".join(sorted({_letters(member) for member in client.answers[number]})) for number in range(len(plans))]


def _letters(member):
    """Return the first letter of an object, or of the element of a pair."""
    return member[0] if isinstance(member, str) else member[0][0]


AREAS = [{"area": area} for area in (AROUND, LOW, HIGH, OPEN_ABOVE, OPEN_BELOW)]


def test_a_height_that_is_not_known_is_in_no_range_of_heights(tmp_path):
    assert answers(tmp_path, AREAS, sky()) == ["abcd", "ad", "b", "b", "abd"]


def test_a_stream_may_have_them_in_all_ranges_instead(tmp_path):
    told = answers(tmp_path, AREAS, sky(unknown_altitude="everywhere"))
    assert told == ["abcd", "acd", "bc", "bc", "abcd"]


def test_a_range_that_is_bounded_in_height_is_nowhere_about_an_object_of_unknown_height(tmp_path):
    widths = [100_000, 100_000]
    shapes = [{"key": key, "half_widths": half} for key in ("cccccc", "dddddd") for half in (widths, [*widths, 500])]
    assert answers(tmp_path, [{"around": shape} for shape in shapes], sky()) == ["abd", "", "abc", "a"]


def test_it_meets_what_has_no_height_but_nothing_that_has_one(tmp_path):
    ship = "ships", 0, one("ships", "ship", 1, [-6.2, 53.4, -np.inf, -6.2, 53.4, np.inf], {})
    low = "ships", 0, one("ships", "low", 1, [-6.2, 53.4, -10.0, -6.2, 53.4, 2_000.0], {})
    close = {"kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 1_000}}
    assert answers(tmp_path / "any", [close], sky(), ship) == ["abcd"]
    assert answers(tmp_path / "low", [close], sky(), low) == ["ad"]


def test_an_open_end_of_heights_stays_open_in_the_plan():
    for area in (OPEN_ABOVE, OPEN_BELOW):
        plan = parse_plan({"stream": "planes", "area": area})
        document = plan_document(plan)
        assert document["compare"] == area
        assert parse_plan(document) == plan


def test_why_says_that_the_height_is_not_known(tmp_path):
    _, _, elements = sky()
    subject = Subject.of("planes", "cccccc", 0, bounds_of(elements["bounds"])[2], {}, EARTH)
    for area, words in ((HIGH, "altitude 3000 to 15000 m"), (OPEN_ABOVE, "altitude from 500 m")):
        term = box_terms(parse_plan({"stream": "planes", "area": area}).compare, subject)[-1]
        assert (term.asks.replace(",", ""), term.holds) == (words, False)
        assert term.found == "its altitude is not known, which counts as none"


@pytest.mark.parametrize("height", [(UNKNOWN, UNKNOWN), (-np.inf, np.inf), (5.0, 7.0)])
def test_boxes_stay_what_they_are_in_json(height):
    box = [1.0, 2.0, height[0], 1.0, 2.0, height[1]]
    assert box_of_document(orjson.loads(orjson.dumps(bounds_document(box)))).tolist() == box

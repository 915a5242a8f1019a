"""CONTRIBUTING.md: its examples run through the registries, the servers and the outbox that real ones go through."""

import asyncio
import re
import sys
import tomllib
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from streaming import entry_points
from streaming.decoders import decoder_class, make_decoder
from streaming.errors import InvalidOptions, InvalidPlan
from streaming.explaining import Subject, explain
from streaming.gateway.access import FeedAccess
from streaming.gateway.transports import describe_transport, make_transport
from streaming.gateway.transports.base import Mark
from streaming.kinds import registry
from streaming.plans import parse_plan, plan_document
from streaming.plans.schema import plan_schema
from streaming.spaces import EARTH
from tests.decoders.feeds import decode
from tests.servers.harness import Client, Engine, one
from tests.webapp.receiver import Receiver
from webapp.delivery.channels import options_of, secrets_of
from webapp.delivery.messages import message_of, trial_document
from webapp.delivery.sending import send_now
from webapp.models import Channel
from webapp.words.plans import plan_in_words

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
MODULES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
(OFFERED,) = re.findall(r"^```toml\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
BAND = {"stream": "s", "kind": "band", "south": 10, "north": 20}


@pytest.fixture(autouse=True)
def my_package(tmp_path, monkeypatch):
    """Install the package of the examples."""
    for path, code in MODULES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    groups = tomllib.loads(OFFERED)["project"]["entry-points"]
    points = {
        group: {kind: EntryPoint(kind, place, group) for kind, place in kinds.items()}
        for group, kinds in groups.items()
    }
    monkeypatch.setattr(entry_points, "_offered", lambda group: points.get(group, {}))
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "my_package"]:
        del sys.modules[name]


def test_every_example_is_a_module_of_its_own():
    assert TEXT.count("```python") == len(MODULES) == 5


def test_the_decoder_decodes_and_has_options_for_a_form():
    decoder = make_decoder({"kind": "positions", "kind_of_object": "bus"}, "s")
    feed = b"bus7 24.95 60.17\nbus8 24.95\n\xff 1 2\nbus9 0 99\n" + b"x" * 300
    elements, malformed = decode(decoder, [feed])
    assert elements["key"].to_pylist() == ["bus7"]
    assert malformed == {"not a position": 2, "position out of range": 1, "line too long": 1}
    described = decoder_class("positions").options.describe()
    own = [("kind_of_object", "str"), ("max_line_bytes", "int")]
    common = [("drop_null_island", "bool"), ("unknown_altitude", "str")]
    assert [(told.name, told.type) for told in described] == own + common
    with pytest.raises(InvalidOptions, match="max_line_bytes must be at least 1; got 0"):
        make_decoder({"kind": "positions", "max_line_bytes": 0}, "s")


def test_the_tests_of_the_decoder_pass():
    names: dict = {}
    exec(MODULES["tests/test_positions.py"], names)
    found = [names[name] for name in names if name.startswith("test_")]
    assert len(found) == 2
    for test in found:
        test()


async def test_the_transport_brings_bytes(tmp_path):
    async def write(_, writer):
        writer.write(b"bus7 24.95 60.17\n")
        writer.close()

    feeds = tmp_path / "feeds"
    feeds.mkdir()
    server = await asyncio.start_unix_server(write, feeds / "receiver")
    access = FeedAccess(tmp_path, folders=(feeds,))
    transport = make_transport({"kind": "unix_client", "path": "feeds/receiver"}, access)
    async with server:
        chunks = [chunk async for chunk in transport.chunks()]
    assert transport.live and transport.replay is None
    assert b"".join(chunk.payload for chunk in chunks) == b"bus7 24.95 60.17\n"
    assert not chunks[0].payload and chunks[-1].mark is Mark.DOCUMENT_END
    (described,) = describe_transport("unix_client")
    assert described.name == "path" and described.required
    for path, rule in (("/elsewhere/receiver", "must lie below a folder"), ("", "path must name a socket")):
        with pytest.raises(InvalidOptions, match=rule):
            make_transport({"kind": "unix_client", "path": path}, access)


def test_the_channel_sends_and_keeps_its_secret(settings):
    settings.DELIVERY_ACCESS = FeedAccess(hosts=("127.0.0.1",))
    with Receiver() as receiver:
        channel = Channel(name="wall", kind="board", options={"url": receiver.url}, secrets={"token": "t0ken"})
        assert send_now(channel, message_of("k", trial_document("wall")))[0] == 200
    (headers, _, _), (notice,) = receiver.requests[0], receiver.taken.values()
    assert set(notice) == {"title", "text", "flashing"} and headers["Authorization"] == "Bearer t0ken"
    assert [told.name for told in options_of("board")] == ["url"] and secrets_of("board") == ["token"]


@pytest.fixture
def band(my_package, monkeypatch):
    """Register the kind of query, and return its class of plans."""
    module = import_module("my_package.band")
    kind = module.BandKind()
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, kind))
    monkeypatch.setitem(registry._BY_PLAN, module.BandPlan, kind)
    return module.BandPlan


def test_the_kind_is_read_written_described_and_checked(band):
    plan = parse_plan(BAND | {"where": "speed > 1"})
    assert type(plan) is band and parse_plan(plan_document(plan)) == plan
    validator = Draft202012Validator(plan_schema())
    assert validator.is_valid(plan_document(plan)) and not validator.is_valid(BAND | {"south": -91})
    assert plan_in_words(plan_document(plan)).startswith("between 10.0 and 20.0 degrees of latitude")
    with pytest.raises(InvalidPlan, match=r"south must not be above north; got 30\.0 and 20\.0"):
        parse_plan(BAND | {"south": 30})


@pytest.mark.parametrize(("lat", "holds"), [(15, True), (50, False)])
def test_an_object_is_told_why_the_kind_has_it_in_an_answer(band, lat, holds):
    subject = Subject.of("s", "a", 0, np.array([24.0, lat, 0.0, 24.0, lat, 0.0]), {}, EARTH)
    told = explain(parse_plan(BAND), subject)
    assert told.holds is holds and len(told.parts) == 1


def test_the_servers_evaluate_the_kind_also_after_an_edit(band, tmp_path):
    client, engine = Client(), Engine(tmp_path, 2, 4, space=EARTH)
    places = {f"at {lat}": (7 * lat % 180, lat) for lat in range(-80, 81, 5)}

    def batch(revision, **edit):
        elements = [
            ("s", 0, one("s", key, revision, (lon, lat, 0, lon, lat, 0), {}, EARTH))
            for key, (lon, lat) in places.items()
        ]
        control = [{"op": "register", "query": 1, "revision": revision, "plan": BAND | edit}]
        client.receive(engine.run(elements, control))
        return set(client.answers[1])

    assert batch(1) == {"at 10", "at 15", "at 20"}
    assert batch(2, south=-6, north=0) == {"at -5", "at 0"}


def test_the_translations_are_of_texts_of_the_example_with_the_same_values():
    pairs = re.findall(r'^msgid "(.*)"\nmsgstr "(.*)"$', TEXT, re.MULTILINE)
    assert len(pairs) == 2
    for english, german in pairs:
        assert english in MODULES["my_package/band.py"]
        assert sorted(re.findall(r"%\(\w+\)s", english)) == sorted(re.findall(r"%\(\w+\)s", german))


def test_the_places_that_it_names_exist():
    named = re.findall(r"`((?:\.ci|streaming|static|tests|webapp)/[\w./]+)`", TEXT)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)#][^)]*)\)", TEXT)]
    pages = re.findall(r"\bdocs/[\w.-]+\.(?:md|json)", TEXT)
    assert [path for path in {*named, *links, *pages} if not (ROOT / path).exists()] == []
    for command in re.findall(r"^\.venv/bin/python -m pytest (\S+)|^node --test (\S+)", TEXT, re.MULTILINE):
        assert (ROOT / "".join(command)).exists()

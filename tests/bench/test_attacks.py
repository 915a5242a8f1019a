"""What attacks a Lookout in the benchmark is legal and covers everything, and what is told of it is right."""

import asyncio
import json
import random

import pyarrow as pa
import pyogrio
import pytest
from django.conf import settings

from bench.attacks.by_http import endless_geopackage
from bench.attacks.by_socket import CORRIDORS, corridor
from bench.attacks.chance_messages import EITHER, Messages
from bench.attacks.chance_plans import Plans
from bench.attacks.followed import Followed
from bench.attacks.outcome import Ages, Outcome, ages_of, report, settled_s
from bench.attacks.prepare import OTHERS_PLANS
from bench.attacks.watcher import Watcher
from streaming.kinds.registry import KINDS, claimed
from streaming.plans import parse_plan
from webapp.consumers.messages import FIELDS, read_fields

DRAWS = 20
CALM = {"rows_ms": [40.0, 60.0], "answer_ms": [50.0, 70.0]}
LATE = {"rows_ms": [2_000.0], "answer_ms": [2_100.0]}
SILENT = {"rows_ms": [], "answer_ms": [900.0]}


def seconds(*told):
    """Return what a watcher tells in seconds that follow time 0."""
    return [{"at_s": 1.0 + number, **second} for number, second in enumerate(told)]


def drawn(known=(3, 4)):
    rng = random.Random(1)
    plans = Plans(rng, known)
    return plans, Messages(rng, plans, known)


def test_plans_that_are_drawn_by_chance_are_legal_and_of_every_kind():
    plans, _ = drawn()
    for draw in plans.kinds.values():
        for _ in range(DRAWS):
            parse_plan(draw())
    assert {claimed(draw()).name for draw in plans.kinds.values()} == {kind.name for kind in KINDS}


def test_the_same_seed_draws_the_same_plans():
    (one, _), (other, _) = drawn(), drawn()
    assert [one.draw() for _ in range(DRAWS)] == [other.draw() for _ in range(DRAWS)]


@pytest.mark.parametrize("kind", FIELDS)
def test_a_message_that_is_drawn_by_chance_has_fields_that_the_server_accepts(kind):
    _, messages = drawn()
    for _ in range(DRAWS):
        message = messages.draw(kind, sorted(FIELDS[kind]))
        assert read_fields(message)[0] == kind and len(json.dumps(message)) <= settings.MAX_MESSAGE_BYTES
        assert len(EITHER.get(kind, ())) + len(message) - 1 in (len(FIELDS[kind]), len(FIELDS[kind]) + 1)


def test_the_plans_of_the_other_user_and_long_corridors_are_legal():
    areas = [corridor(number) for number in range(CORRIDORS)]
    assert {len(area["corridor"]["line"]) for area in areas} == {999}
    for plan in [*OTHERS_PLANS, *({"stream": "ships", "area": area} for area in areas)]:
        parse_plan(plan)


def test_the_file_that_never_ends_is_a_table_of_points(tmp_path):
    path = tmp_path / "endless.gpkg"
    path.write_bytes(endless_geopackage())
    read = pyogrio.read_dataframe(path, layer="endless", max_features=1_000)
    assert len(read) == 1_000 and set(read.geom_type) == {"Point"} and len(path.read_bytes()) < 200_000


def test_an_answer_grows_older_while_nothing_comes():
    watcher = Watcher()
    watcher.newest_us = 1_000_000
    for now_us in (1_100_000, 1_600_000):
        watcher.look(now_us)
    assert watcher.take('{"type": "engine.status"}', 1_700_000) is None
    told = watcher.tell()
    assert told["answer_ms"] == [100.0, 600.0] and told["rows_ms"] == [] == watcher.tell()["answer_ms"]


def test_all_is_as_before_once_five_seconds_in_a_row_are():
    before = ages_of(seconds(CALM))
    assert settled_s(seconds(*[CALM] * 5), 0.0, before) == 0.0
    assert settled_s(seconds(LATE, CALM, SILENT, *[CALM] * 5), 0.0, before) == 3.0
    assert settled_s(seconds(CALM, CALM, SILENT, CALM, CALM), 0.0, before) is None
    assert settled_s(seconds(*[CALM] * 9), 0.0, Ages()) is None


@pytest.mark.parametrize(
    ("changes", "broken"),
    [
        ({}, []),
        ({"during": ages_of(seconds(LATE))}, ["ages"]),
        ({"during": ages_of(seconds({"rows_ms": [50.0], "answer_ms": [3_000.0]}))}, ["ages"]),
        ({"during": ages_of(seconds(SILENT))}, ["ages"]),
        ({"grown_mib": 1_025.0}, ["memory"]),
        ({"settled_s": 11.0}, ["calm after"]),
        ({"settled_s": None}, ["calm after"]),
        ({"tally": {"not whole": 3}}, ["whole"]),
        ({"failed": "it broke"}, ["it broke"]),
    ],
)
def test_a_promise_that_is_not_kept_is_told(changes, broken):
    calm = ages_of(seconds(CALM))
    outcome = Outcome("joins", **{"before": calm, "during": calm, "after": calm, "settled_s": 1.0} | changes)
    assert outcome.broken == broken == outcome.document["broken"]
    assert ("not kept" in report([outcome])) == bool(broken)


def frame_of(head, *rows):
    """Return a frame as a client reads it: rows are a sign, a key and a partner, of query 7."""
    signs, keys, partners = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"query": pa.array([7] * len(rows), pa.int64()), "sign": pa.array(signs, pa.string())}
    texts = {"key": pa.array(keys, pa.string()), "partner": pa.array(partners, pa.string())}
    return {"query": 7, **head}, pa.table(columns | texts)


def test_a_followed_answer_is_the_snapshot_with_all_changes_until_another_is_asked_for():
    followed = Followed(7)
    followed.take(*frame_of({"type": "answer.snapshot"}, ("+", "a", "b")))
    followed.take(*frame_of({"type": "answer.changes"}, ("+", "c", "d"), ("~", "a", "b"), ("+", "a", "e")))
    followed.take(*frame_of({"type": "answer.changes"}, ("-", "a", "b")))
    followed.take(*frame_of({"type": "answer.snapshot", "query": 8}, ("+", "x", "y")))
    assert followed.members == {("c", "d"), ("a", "e")}

    async def ask():
        followed.asked = asyncio.get_running_loop().create_future()
        followed.take(*frame_of({"type": "answer.snapshot"}, ("+", "c", "d")))
        return await followed.asked

    assert asyncio.run(ask()) == {("c", "d")} and len(followed.members) == 2

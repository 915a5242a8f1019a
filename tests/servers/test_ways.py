"""Ways of evaluation: one from outside runs as those that Lookout has, and nobody names one but the list of them."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from streaming.elements import bounds_of, point_elements
from streaming.engine.repartition import divided
from streaming.engine.ways import WAYS
from streaming.servers.answers.tuples import Results
from streaming.servers.elements import no_elements
from streaming.servers.home_turn import EncodedPart, HomePart
from streaming.servers.way import Part, Way, WayState
from streaming.state.codec import HEAD, NOTHING, Codec, Tables, head_of, with_head
from tests.servers.harness import Engine

ROOT = Path(__file__).parents[2]
ARRIVED, TOLD, SUMS, READ, FIRST = "arrived", "arrived_now", "sums", "read", "first_read"
# Who names ways: the list of them.
LIST = "streaming/engine/ways.py"


def json_codec(empty):
    """Return how a state is stored that JSON can hold."""
    return Codec(
        lambda batch: empty,
        lambda state: {HEAD: Tables([with_head(NOTHING, {"state": state})])},
        lambda parts: head_of(parts[HEAD].tables()[0])["state"],
    )


class ReadCounts(HomePart):
    """How many elements a home server has read."""

    name = READ

    def encode(self, part):
        return EncodedPart({READ: part}, rows=[pa.table({"count": [part]})])

    def decode(self, head, parts, rows, space):
        assert next(rows)["count"].to_pylist() == [head[READ]]
        return head[READ]

    def divided(self, found, partitions):
        return [sum(found), *[0] * (partitions - 1)]


class RunningMeans(Way):
    """The mean of each object's first coordinate: regions tell the sums of a batch, and the assembler adds them up.

    Each region also counts what has arrived there; a region map that takes force leaves all counts to the first region.
    Home servers count what they read, and send the first element of each batch to all regions.
    """

    states = (
        WayState(ARRIVED, lambda space: json_codec(0)),
        WayState(TOLD, lambda space: json_codec([]), passed_on=True),
        WayState(SUMS, lambda space: json_codec({})),
    )
    home_part = ReadCounts()
    element_tables = (FIRST,)

    def in_home(self, turn):
        regions = np.arange(turn.control.after.region_map.regions if turn.elements.num_rows else 0)
        turn.route(FIRST, turn.elements, np.zeros_like(regions), regions)
        turn.head_of_all[READ] = turn.elements.num_rows
        return turn.home.parts.get(READ, 0) + turn.elements.num_rows

    def reported(self, homes, registry):
        return {READ: sum(home.parts.get(READ, 0) for home in homes)}

    def concerns(self, control):
        return True

    assembles = concerns

    def in_region(self, turn):
        firsts = turn.sent(FIRST, no_elements(turn.states.space)).num_rows
        assert firsts == sum(sent.head[READ] > 0 for sent in turn.inputs)
        arrivals = turn.tables["arrivals"]
        was = turn.before(ARRIVED)
        if turn.rescaling:
            was = 0 if turn.number else sum(turn.before_of_all(ARRIVED))
        turn.leave(ARRIVED, was + arrivals.num_rows)
        turn.save(TOLD, [*zip(arrivals["key"].to_pylist(), bounds_of(arrivals["bounds"])[:, 0].tolist(), strict=True)])
        return Results.nothing(turn.states.space)

    def in_assembler(self, turn):
        sums = {key: [*told] for key, told in turn.before(SUMS).items()}
        for key, value in (row for told in turn.of_regions(TOLD) for row in told):
            count, total = sums.get(key, (0, 0.0))
            sums[key] = [count + 1, total + value]
        turn.attempt.save(SUMS, sums)
        return Part(Results.nothing(turn.last.states.space), turn.border({}))

    def left_by_regions(self, registry):
        return (ARRIVED,)


@pytest.fixture
def means():
    """Have engines run one way more."""
    way = RunningMeans()
    WAYS.append(way)
    yield
    WAYS.remove(way)


@pytest.mark.seeds(12)
def test_a_way_from_outside_keeps_its_states_through_restarts_and_other_region_maps(tmp_path_factory, means, seed):
    rng, engine = np.random.default_rng(seed), Engine(tmp_path_factory.mktemp("engine"))
    values = defaultdict(list)
    for batch in range(20):
        ships = np.sort(rng.choice(9, rng.integers(0, 9), replace=False))
        names, places = [f"ship {ship}" for ship in ships], rng.integers(-80, 80, (len(ships), 2)).astype(float)
        for name, place in zip(names, places, strict=True):
            values[name].append(place[0])
        elements = point_elements("ships", names, np.full(len(ships), batch), places, [{}] * len(ships))
        engine.run([("ships", batch, elements)], [])
        if rng.random() < 0.3:
            engine.restart()
    store, regions = engine.layout.store, range(engine.region_map.regions)
    assert store.before(SUMS, engine.batch) == {name: [len(some), sum(some)] for name, some in values.items()}
    arrived = [store.before(f"{ARRIVED}/{number}", engine.batch) for number in regions]
    homes = [store.home(number, engine.batch) for number in range(engine.layout.partitions)]
    more = list(divided(homes, 3))
    assert sum(arrived) == sum(map(len, values.values()))
    assert [RunningMeans().reported(some, None)[READ] for some in (homes, more[:1], more)] == [sum(arrived)] * 3


def test_nobody_names_a_way_but_the_list_of_them():
    rooms = ROOT / "streaming" / "servers" / "ways"
    paths = [path for part in ("streaming", "webapp") for path in (ROOT / part).rglob("*.py")]
    named = [path for path in paths if rooms not in path.parents and "streaming.servers.ways" in path.read_text()]
    assert [str(path.relative_to(ROOT)) for path in named] == [LIST]

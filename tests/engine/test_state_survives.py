"""Answers stay exact through crashes at any point, attempts that run twice or end late, and broken files."""

import contextlib
import itertools
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
import shapely

from streaming.elements import partition_of, point_elements, to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, region_task
from streaming.engine.layout import Layout
from streaming.engine.local_layers import MissingVersion
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.layers.features import feature_table
from streaming.spaces import EARTH
from streaming.state.codec import HEAD, NOTHING, Codec, Tables
from streaming.state.errors import LostState, OtherSettings
from streaming.state.manifest import PARTS, Shape, batch_of, read_manifest
from streaming.state.recovery import discard_later, newest_whole
from streaming.state.stores import LocalStore, RemoteStore
from streaming.state.tables import Packer, tables_in
from streaming.state.upkeep import Upkeep
from streaming.state.versions import Attempt, StateVersions
from tests.servers.harness import Client, Engine, one

PARTITIONS, REGIONS, SHIPS, BATCHES = 2, 4, 60, 111
SHAPE = Shape("earth", PARTITIONS)
PLANS = (
    {"stream": "ships", "area": {"lo": [-5, -5], "hi": [5, 5]}},
    {"stream": "ships", "compare": {"lo": [-3, -9], "hi": [4, 2]}, "report": "outside"},
    {"stream": "ships", "kind": "knn", "around": {"key": "ship 0"}, "k": 3},
    {"stream": "ships", "kind": "join", "join": {"stream": "ships", "predicate": "dwithin", "distance": 50_000}},
    {"stream": "ships", "around": {"key": "ship 1", "radius": 300_000}, "aggregate": {"function": "count"}},
    {
        "stream": "ships",
        "kind": "encounter",
        "join": {"stream": "ships", "predicate": "dwithin", "distance": 500_000},
        "for_s": 1e-6,
        "gap_s": 3e-5,
        "lateness_s": 1e-6,
    },
)


class Crash(Exception):
    """The process ends here."""


class Crashing:
    """A store whose process ends before or after the n-th change from now on."""

    def __init__(self, store, rng):
        self.store, self.rng, self.left = store, rng, None

    def arm(self, changes):
        self.left = self.rng.randrange(changes)

    def _change(self, change):
        if self.left is None:
            return change()
        self.left -= 1
        if self.left >= 0:
            return change()
        self.left = None
        if self.rng.random() < 0.5:
            change()
        raise Crash

    def get(self, name, offset=0, size=None):
        return self.store.get(name, offset, size)

    def lines(self, name):
        return self.store.lines(name)

    def add(self, folder, batch, content):
        return self._change(lambda: self.store.add(folder, batch, content))

    def append(self, name, line):
        self._change(lambda: self.store.append(name, line))

    def list(self, folder=""):
        return self.store.list(folder)

    def put(self, name, content, once=False):
        return self._change(lambda: self.store.put(name, content, once))

    def delete(self, names):
        for name in list(names):
            self._change(lambda name=name: self.store.delete([name]))

    def sync(self, names):
        self._change(lambda: self.store.sync(names))


class History:
    """A fixed sequence of batches: the logs, which keep every entry that has not been trimmed."""

    def __init__(self, seed, batches):
        rng = np.random.default_rng(seed)
        places = rng.uniform(-10, 10, (SHIPS, 2))
        self.batches = []
        for batch in range(batches):
            ships = np.sort(rng.choice(SHIPS, rng.integers(1, 12), replace=False))
            places[ships] = np.clip(places[ships] + rng.normal(0, 2, (len(ships), 2)), -10, 10)
            table = point_elements(
                "ships", [f"ship {s}" for s in ships], np.full(len(ships), batch), places[ships], [{}] * len(ships)
            )
            control = [{"op": "tick", "now_us": batch * 1_000_000}]
            if batch == 2:
                control += [{"op": "stream", "stream": "ships", "ttl_s": 40}]
            for number, plan in enumerate(PLANS):
                if batch == 1 + number or (batch - number) % 37 == 20:
                    control.append({"op": "register", "query": number, "revision": batch + 1, "plan": plan})
                if batch % 37 == 30 + number:
                    control.append({"op": "cancel", "query": number, "revision": batch + 1})
            self.batches.append((table, control))
        self.trimmed = 0

    def entries(self, batch):
        assert batch >= self.trimmed, "the logs no longer have what is needed"
        return self.batches[batch]


class Process:
    """A program with a store of its own that runs tasks of batches."""

    def __init__(self, root, history, files):
        self.root, self.history = root, history
        store = Store(root, EARTH, files=files, regions=REGIONS)
        self.layout = Layout(store, PARTITIONS, HistoryWriter(root / "history", EARTH))

    def homes(self, batch):
        table, control = self.history.entries(batch)
        inputs = [[] for _ in range(REGIONS)]
        for partition in range(PARTITIONS):
            mine = table.filter(partition_of(table["key_hash"].to_numpy(), PARTITIONS) == partition)
            saving = Saving(batch - 1, {"batch": str(batch)})
            blocks = [IngestBlock("ships", batch * 1_000_000, to_ipc(mine))]
            for sent in home_task(self.layout, partition, batch, blocks, control, saving):
                inputs[sent.region].append(sent)
        return inputs

    def region(self, number, batch, inputs):
        control = self.history.batches[batch][1]  # a task has read them before it ran the home servers
        return region_task(self.layout, number, batch, inputs[number], control, Saving(batch - 1))


class Reader:
    """What a hub does: repeats are dropped, and each batch is received once it is whole."""

    def __init__(self):
        self.client, self.parts, self.done, self.log = Client(), {}, -1, []

    def publish(self, fragments):
        for fragment in fragments:
            if fragment.batch <= self.done:
                continue
            parts = self.parts.setdefault(fragment.batch, {})
            parts.setdefault(fragment.region, fragment)
            if len(parts) == fragment.regions:
                assert fragment.batch == self.done + 1
                ordered = [parts[region] for region in sorted(parts)]
                self.client.receive(ordered)
                self.log.append(answers_of(self.client))
                self.done = fragment.batch


def answers_of(client):
    """Return all answers with their distances and ranks."""
    told = ((query, dict(answer)) for query, answer in sorted(client.answers.items()))
    return {query: (answer, dict(client.ranks[query])) for query, answer in told if answer}


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    """The answers after each batch of an engine that nothing happens to."""
    history, reader = History(3, BATCHES), Reader()
    root = tmp_path_factory.mktemp("truth")
    process = Process(root, history, LocalStore(root))
    upkeep = Upkeep(process.layout.store.files)
    for batch in range(len(history.batches)):
        inputs = process.homes(batch)
        for number in range(REGIONS):
            fragments = process.region(number, batch, inputs)
            assert not any(ack["error"] for fragment in fragments for ack in fragment.acks)
            reader.publish(fragments)
        upkeep.sync()
        upkeep.clean()
    shown = Counter(query for answers in reader.log for query in answers)
    assert all(shown[query] > BATCHES / 3 for query in range(len(PLANS))), shown
    return reader.log


def damage(root, files, rng):
    """Truncate, alter or remove what the newest state alone needs: a part, a segment or the manifest."""
    newest, *older = [read_manifest(files, batch) for batch in sorted(kept_batches(files))[::-1]]
    shared = {file for manifest in older for file in manifest.files()}
    own = [(file.name, file.offset, file.size) for file in set(newest.files()) - shared]
    name, start, size = rng.choice([(newest.name, 0, (root / newest.name).stat().st_size), *sorted(own)])
    path, kind = root / name, rng.choice(["truncate", "alter", "remove"])
    content, at = path.read_bytes(), start + rng.randrange(size)
    if kind == "remove" and name not in {file.name for file in shared}:
        path.unlink()
    elif kind == "alter" or any(file.name == name and file.offset > start for file in shared):
        replace_file(path, content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :])
    else:
        replace_file(path, content[:at])


def replace_file(path, content):
    """Write a file anew, so that what others have mapped into memory stays as it is."""
    path.unlink()
    path.write_bytes(content)


def kept_batches(files):
    return [batch_of(name) for name in files.list("manifests")]


@pytest.mark.long
@pytest.mark.separate_seeds(*range(4))
def test_a_history_of_crashes_duplicates_zombies_and_broken_files_equals_the_oracle(tmp_path, truth, seed):
    rng, reader, history = random.Random(seed), Reader(), History(3, len(truth))
    batch, zombies, crashes = 0, [], 0
    local = LocalStore(tmp_path)
    files = Crashing(local, rng)
    process, upkeep = Process(tmp_path, history, files), Upkeep(files)
    while batch < len(history.batches):
        try:
            if rng.random() < 0.2:
                files.arm(60)
            run(process, batch, reader, rng, zombies, tmp_path)
            batch += 1
            if rng.random() < 0.4:
                upkeep.sync()
            upkeep.clean()
            if upkeep.oldest:
                history.trimmed = upkeep.oldest.batch + 1
        except Crash:
            crashes += 1
            files.left = None
            if rng.random() < 0.5 and len(kept_batches(local)) > 1:
                damage(tmp_path, local, rng)
            found = newest_whole(local, SHAPE, committed=batch - 1)
            discard_later(local, found.manifest)
            batch = found.manifest.batch + 1 if found.manifest else 0
            process, upkeep, zombies = Process(tmp_path, history, files), Upkeep(files), []
        assert reader.log == truth[: len(reader.log)]
    assert crashes > BATCHES // 20 and len(reader.log) == len(truth)


def run(process, batch, reader, rng, zombies, root):
    """Run a batch; some tasks run twice, in the same or another process, and some attempts end a batch later."""
    late = [zombie for zombie in zombies if zombie[1] <= batch - 1]
    inputs = process.homes(batch)
    if rng.random() < 0.3:
        Process(root, process.history, LocalStore(root)).homes(batch)
    for number in rng.sample(range(REGIONS), REGIONS):
        if rng.random() < 0.2:
            other = Process(root, process.history, LocalStore(root))
            zombies.append((other, batch, number, inputs))
            if rng.random() < 0.5:
                reader.publish(other.region(number, batch, inputs))
        reader.publish(process.region(number, batch, inputs))
        if rng.random() < 0.1:
            reader.publish(process.region(number, batch, inputs))
        if late and rng.random() < 0.3:
            end_late(late.pop(), zombies, reader)


def end_late(zombie, zombies, reader):
    other, batch, number, inputs = zombie
    zombies.remove(zombie)
    # Its batch may be so long ago that what it needs is removed.
    with contextlib.suppress(LostState, FileNotFoundError):
        reader.publish(other.region(number, batch, inputs))


@pytest.fixture
def engine(tmp_path):
    """An engine with five batches behind it."""
    running = Engine(tmp_path, saved_every=1)
    for batch in range(5):
        place = [1.0 + batch, 1.0, -np.inf, 1.0 + batch, 1.0, np.inf]
        running.run([("ships", batch, one("ships", "a", batch, place, {}))], [{"op": "tick", "now_us": batch}])
        running.upkeep.sync()
    return running


def test_the_newest_whole_state_is_found_and_the_broken_ones_are_named(engine):
    files = engine.layout.store.files
    newest = read_manifest(files, 4)
    broken = newest.states["region/0"][HEAD]
    path = engine.root / broken.name
    path.write_bytes(path.read_bytes()[: broken.offset + broken.size - 1])
    found = newest_whole(files, SHAPE, committed=4)
    assert found.manifest.batch == 3
    words = found.problems[0]
    assert f"{broken.name} is cut: {broken.size - 1} of {broken.size} bytes are there" in words and "batch 4" in words
    (engine.root / "manifests" / "3.json").write_bytes(b"")
    assert newest_whole(files, SHAPE, committed=4).manifest.batch == 2


def test_a_state_of_which_nothing_is_whole_is_refused_with_an_instruction(engine):
    for path in (engine.root / "manifests").iterdir():
        path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LostState, match=r"no state is whole: .* stop Lookout and remove engine/ and redis/"):
        newest_whole(engine.layout.store.files, SHAPE, committed=4)


def test_the_state_of_another_space_is_refused_with_the_values(engine):
    with pytest.raises(OtherSettings, match="belongs to the space earth, not to prices"):
        newest_whole(engine.layout.store.files, Shape("prices", 2), committed=4)


def test_only_segments_that_no_kept_manifest_needs_are_removed(engine, monkeypatch):
    monkeypatch.setattr("streaming.state.stores.LARGE", 3000)  # some parts are larger
    files, rng, most = engine.layout.store.files, np.random.default_rng(1), 0
    for batch in range(5, 40):
        table = point_elements(
            "ships", [f"{n}" for n in range(batch)], [batch] * batch, rng.uniform(-9, 9, (batch, 2)), [{}] * batch
        )
        engine.run([("ships", batch, table)], [{"op": "tick", "now_us": batch}])
        engine.upkeep.sync()
        engine.upkeep.clean()
        kept = [read_manifest(files, batch) for batch in kept_batches(files)]
        assert len(kept) == 3 and not any(words for manifest in kept for words in manifest.broken(files))
        named = {file.name for manifest in kept for file in manifest.files()}
        assert all(batch_of(name) >= batch - 2 for name in set(files.list(PARTS)) - named)
        most = max(most, len(files.list(PARTS)))
    assert most < 30


def test_processes_that_add_to_one_folder_fill_different_segments_and_all_parts_come_back(tmp_path):
    rng = random.Random(2)
    stores, added = [LocalStore(tmp_path), LocalStore(tmp_path), RemoteStore(f"memory://{tmp_path.name}")], []
    for store, batch, size in itertools.product(stores, range(10), (64, 1, 300_000, 63, 5000)):
        content = pa.py_buffer(rng.randbytes(size))
        added.append((store, batch, store.add(PARTS, batch, content), content))
    for store, batch, place, content in added:
        assert place.offset % 64 == 0 and batch == batch_of(place.name)
        assert store.get(place.name, place.offset, content.size).equals(content)
    # Locally one for what is small and one for what is large, else one for each content.
    assert len({place.name for _, _, place, _ in added}) == 2 * 10 * 2 + 10 * 5


def test_parts_are_packed_into_memory_that_is_used_again():
    rng, packer = np.random.default_rng(1), Packer()
    for rows in (0, 10, 1000, 5, 3_000_000, 1):
        parts = [[pa.table({"n": rng.integers(0, 9, rows), "text": ["ä"] * rows}), NOTHING], [], [pa.table({"n": [1]})]]
        packed, places = packer.packed(parts)
        found = [tables_in(packed.slice(offset, size)) for offset, size in places]
        assert found == parts and all(offset % 64 == 0 for offset, _ in places)


def test_lines_that_processes_append_at_the_same_time_are_all_there(tmp_path):
    lines = [b"%d" % n * 2000 for n in range(200)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda line: LocalStore(tmp_path).append("receipts/1", line), lines))
    assert sorted(LocalStore(tmp_path).lines("receipts/1")) == sorted(lines)
    with (tmp_path / "receipts" / "1").open("ab") as file:  # a power cut in the middle of a line
        file.write(b"\n12")
    LocalStore(tmp_path).append("receipts/1", b"next")
    assert LocalStore(tmp_path).lines("receipts/1")[-2:] == [b"12", b"next"]


def test_a_part_that_the_version_before_had_is_not_written_again(tmp_path):
    def encode(numbers):
        parts = {f"part-{n}": Tables([pa.table({"n": [n]})]) for n in numbers}
        return parts | {HEAD: Tables([pa.table({"n": numbers})])}

    def decode(parts):
        return parts[HEAD].tables()[0]["n"].to_pylist()

    codec, files = Codec(lambda batch: [], encode, decode), LocalStore(tmp_path)
    for batch, numbers in enumerate(([1, 2], [2, 3], [2, 3, 4])):
        versions = StateVersions(files, lambda name: codec)
        attempt = Attempt(versions, batch, "only")
        attempt.save("numbers", numbers)
        attempt.end()
        versions.commit(batch, batch - 1, "epoch", SHAPE, versions.ended(batch, ["only"]))
        assert StateVersions(files, lambda name: codec).before("numbers", batch + 1) == numbers
    written = {part: file.batch for part, file in read_manifest(files, 2).states["numbers"].items()}
    assert written == {"part-2": 0, "part-3": 1, "part-4": 2, HEAD: 2}


def test_a_level_of_the_registry_is_written_once_and_read_only_where_it_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr("streaming.operators.levelling.RATIO", 2)
    engine, rng, written = Engine(tmp_path, saved_every=1), random.Random(4), {}
    reading = Store(tmp_path, EARTH)
    for batch in range(40):
        queries = rng.sample(range(100), rng.choice([0, 1, 1, 3, 9]))
        entries = [
            {
                "op": rng.choice(["register", "register", "cancel"]),
                "query": query,
                "revision": batch + 1,
                "plan": PLANS[0],
            }
            for query in queries
        ]
        engine.run([], entries)
        files = engine.layout.store.files
        parts = read_manifest(files, batch).states.get("registry", {})
        for part, file in parts.items():
            assert part == HEAD or written.setdefault(part, file) == file
        registry = engine.layout.store.registry(batch + 1)
        assert parts.keys() - {HEAD} == {f"level-{level.number}" for level in registry.registrations.levels}
        if rng.random() < 0.3:
            engine.restart()
        for read in (engine.layout.store.registry(batch + 1), Store(tmp_path, EARTH).registry(batch + 1)):
            assert read == registry and read.ids.tolist() == registry.ids.tolist()
        if batch % 4 == 0:  # this process knows an earlier version
            known = {level.number: level for one in reading._registries.values() for level in one.registrations.levels}
            levels = reading.registry(batch + 1).registrations.levels
            assert all(known.get(level.number, level) is level for level in levels)
            assert reading.registry(batch + 1) == registry
    assert len(written) > 20


def test_a_version_shares_with_one_in_memory_the_parts_whose_files_are_the_same(tmp_path):
    """Of equal names alone this is not known: the version in memory may be of an attempt that does not count."""

    def encode(state):
        return {**state, HEAD: Tables([pa.table({"n": sorted(state)})])}

    def decode(parts):
        return {name: parts[name] for name in parts[HEAD].tables()[0]["n"].to_pylist()}

    def begun(batch):
        assert batch == 0
        return {}

    codec, files = Codec(begun, encode, decode), LocalStore(tmp_path)
    mine, other = (StateVersions(files, lambda name: codec) for _ in range(2))
    for batch, versions in enumerate((mine, other)):
        state = versions.before("numbers", batch) | {f"part-{batch}": Tables([pa.table({"n": [batch]})])}
        attempt = Attempt(versions, batch, "only")
        attempt.save("numbers", state)
        attempt.end()
        if batch:
            Attempt(mine, batch, "only").save("numbers", state)  # it does not end
            assert mine.before("numbers", 1, keep=False)["part-0"].tables()[0]["n"].to_pylist() == [0]
        other.commit(batch, batch - 1, "epoch", SHAPE, other.ended(batch, ["only"]))
    third = Attempt(other, 2, "only")
    third.save("numbers", known := other.before("numbers", 2))
    third.end()
    other.commit(2, 1, "epoch", SHAPE, other.ended(2, ["only"]))
    read = mine.before("numbers", 3)
    assert [read[f"part-{n}"].tables()[0]["n"].to_pylist() for n in range(2)] == [[0], [1]]
    assert read["part-0"] is known["part-0"] and read["part-1"] is not known["part-1"]


def test_a_version_of_a_layer_that_is_not_there_yet_is_an_error_and_one_that_was_removed_is_not(engine, monkeypatch):
    monkeypatch.setattr("streaming.engine.local_layers.LAYER_WAIT_S", 0.0)
    store = engine.layout.store
    with pytest.raises(MissingVersion, match="version 1 of layer zones is not there"):
        store.layers.layer("zones", 1)
    for _ in range(2):
        engine.layers.write("zones", feature_table("zones", ["a"], [shapely.box(0, 0, 1, 1)], [{}]))
    assert store.layers.layer("zones", 2)
    engine.layers.drop("zones")
    engine.restart()
    assert engine.layout.store.layers.layer("zones", 2), "its copy is still there"
    assert not engine.layout.store.layers.layer("zones", 1)
    with pytest.raises(MissingVersion):
        engine.layout.store.layers.layer("zones", 3)


@pytest.fixture(params=["local", "memory", "s3"])
def store(request, tmp_path):
    """A store of each kind."""
    if request.param == "s3":
        return request.getfixturevalue("s3_store")
    return LocalStore(tmp_path) if request.param == "local" else RemoteStore(f"memory://{tmp_path.name}")


@pytest.mark.long
def test_stores_keep_what_is_put_whole_and_only_the_first_if_asked(store):
    assert store.list("a") == [] and store.list() == []
    assert store.put("a/b/1.x", b"one") and store.put("a/2.x", b"")
    assert not store.put("a/b/1.x", b"two", once=True) and store.put("a/3.x", b"three", once=True)
    assert store.get("a/b/1.x").to_pybytes() == b"one" and store.get("a/2.x").size == 0
    assert store.put("a/b/1.x", b"four") and store.get("a/b/1.x").to_pybytes() == b"four"
    assert store.list("a") == ["a/2.x", "a/3.x", "a/b/1.x"] and store.list("a/b") == ["a/b/1.x"]
    store.sync(["a/2.x", "a/b/1.x"])
    store.delete(["a/b/1.x", "a/none"])
    assert store.list() == ["a/2.x", "a/3.x"]
    with pytest.raises(FileNotFoundError):
        store.get("a/b/1.x")
    assert store.get("a/3.x", 2).to_pybytes() == b"ree" and store.get("a/3.x", 1, 3).to_pybytes() == b"hre"
    assert store.get("a/3.x", 3, 9).to_pybytes() == b"ee" and store.get("a/3.x", 9, 1).size == 0
    store.append("b/1", b"one")
    store.append("b/1", b"two")
    assert sorted(store.lines("b/1")) == [b"one", b"two"] and store.lines("b/2") == store.lines("c/1") == []
    assert {batch_of(name) for name in store.list("b")} == {1}


@pytest.mark.long
@pytest.mark.parametrize("store", ["memory", "s3"], indirect=True)
def test_an_engine_keeps_its_state_in_any_file_system(tmp_path, truth, store):
    reader, history = Reader(), History(3, 12)
    for batch in range(6):
        process = Process(tmp_path, history, store)
        inputs = process.homes(batch)
        for number in range(REGIONS):
            reader.publish(process.region(number, batch, inputs))
    assert reader.log == truth[:6] and not (tmp_path / "parts").exists()

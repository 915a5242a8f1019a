"""A whole engine without Spark: home and region tasks over real state files, and a client that keeps the answers."""

import random
import re
from collections import defaultdict
from types import SimpleNamespace

from streaming.elements import bounds_of, box_elements, partition_of, to_ipc
from streaming.engine.batch import IngestBlock, Saving, home_task, must_save, region_task, save
from streaming.engine.batch_traces import EngineTraces
from streaming.engine.layout import Layout
from streaming.engine.store import Store
from streaming.history import HistoryWriter
from streaming.layers.store import LayerStore
from streaming.operators.region_map import RegionMap
from streaming.results import DROPPED, ENTERED, EXPIRED, LEFT, PLACED, SIGNS, SNAPSHOT, STAYED, events_of
from streaming.results.netting import net
from streaming.servers.control.entries import ControlEntries
from streaming.spaces import EARTH
from streaming.state.upkeep import Upkeep
from streaming.traces import Traces

UPKEEP_EVERY = 5
# The share of batches with another region map, and how many regions it has at most.
RESCALED, MOST_REGIONS = 0.2, 6
# Of the batches that need not be saved, one of so many is, as at the end of an interval.
SAVED_EVERY = 3


def another(known, rng):
    """Return some region map that may follow another: with a region split, two merged, or all cut anew."""
    if rng.random() < 0.2:
        return RegionMap.grid(known.space, rng.randint(1, MOST_REGIONS)).after(known)
    if known.siblings and (rng.random() < 0.4 or known.regions >= MOST_REGIONS):
        return known.merged(*rng.choice(known.siblings))
    if known.regions >= MOST_REGIONS:
        return RegionMap.grid(known.space, 2).after(known)
    region, axis = rng.randrange(known.regions), rng.randrange(known.space.n)
    low, high = known.cells[region, axis], known.cells[region, axis + known.space.n]
    return known.split(region, axis, low + (high - low) * rng.uniform(0.1, 0.9), rng.randrange(3))


# Reads what servers send each other, as an engine that traces elements does, and keeps nothing of it.
TRACES = EngineTraces(Traces(0.1, SimpleNamespace(record=lambda *span: None)))
# Failures that users cause: their filters, and reports that are late, or not believed.
_USERS = re.compile("^the filter|came too late|not believed")


class Engine:
    """Runs batches as the tasks of an interval would, in one process."""

    def __init__(
        self,
        root,
        partitions=2,
        regions=4,
        space=EARTH,
        layers=None,
        saved_every=SAVED_EVERY,
        rescaled=RESCALED,
        padding=None,
        merger=None,
    ):
        self.root, self.space, self.saved_every, self._regions = root, space, saved_every, regions
        self._padding = padding
        self.layers = LayerStore(layers or root / "layers")
        self.layout = Layout(self._store(), partitions, HistoryWriter(root / "history", space, merger))
        self.upkeep = Upkeep(self.layout.store.files)
        self.batch, self.saved, self.may_fail = 0, -1, False
        self._rescaled = rescaled

    def restart(self):
        """Save the states, then forget what the process knows."""
        self.save()
        self.forget()

    def forget(self):
        """Forget what the process knows; the files stay."""
        kept = self.layout
        kept.history.settle()
        self.layout = Layout(self._store(), kept.partitions, kept.history)

    def _store(self):
        return Store(self.root, self.space, self.layers.root, regions=self._regions, padding=self._padding)

    def save(self):
        """Save the states after the newest batch, as at the end of an interval."""
        batch, regions = self.batch - 1, self.layout.store.registry(self.batch).region_map.regions
        if self.saved != batch:
            save(self.layout, batch, range(self.layout.partitions), range(regions), Saving(self.saved))
            self.saved = batch

    def rewind(self):
        """Have the newest batch run again; the one before it must be saved."""
        self.batch -= 1
        self.saved = self.batch - 1

    def _saving(self, control):
        must = must_save(self.layout, self.batch, control)
        if must.before or self.saved_every == 1:
            self.save()
        return Saving(self.saved) if must.after or self.saved_every == 1 else None

    @property
    def region_map(self):
        """The region map after the newest batch."""
        return self.layout.store.registry(self.batch).region_map

    def _rescale(self, control):
        """Add another region map to some of the batches; to the same ones if a batch runs again."""
        rng = random.Random(self.batch)
        if not self.batch or rng.random() >= self._rescaled or isinstance(control, ControlEntries):
            return control
        return [*control, {"op": "regions", "map": another(self.region_map, rng).document()}]

    def run(self, elements, control):
        """Run one batch of (stream, heard_us, table) and control entries; return the fragments."""
        control = self._rescale(control)
        inputs, saving = defaultdict(list), self._saving(control)
        for partition in range(self.layout.partitions):
            blocks = []
            for stream, heard_us, table in elements:
                mine = table.filter(partition_of(table["key_hash"].to_numpy(), self.layout.partitions) == partition)
                blocks.append(IngestBlock(stream, heard_us, to_ipc(mine)))
            made = home_task(self.layout, partition, self.batch, blocks, control, saving)
            TRACES.home(self.batch, partition, made, 0)
            TRACES.send(self.batch, made, 0)
            for sent in made:
                inputs[sent.region].append(sent)
        fragments = []
        for number in range(self.layout.store.registry(self.batch + 1).region_map.regions):
            made = region_task(self.layout, number, self.batch, inputs[number], control, saving)
            TRACES.evaluate(inputs[number], made, 0)
            fragments += made
        self.batch += 1
        if saving:
            self.saved = self.batch - 1
        elif self.batch % self.saved_every == 0:
            self.save()
        if self.batch % UPKEEP_EVERY == 0:
            self.upkeep.sync()
        self.upkeep.clean()
        failures = [failure for fragment in fragments for failure in fragment.failures]
        # What fails is an error of ours, which no border may hide from tests, but for these and for refused plans.
        ours = [one for one in failures if not (_USERS.search(one["error"]) or "refused" in one)]
        assert self.may_fail or not ours, ours
        return fragments

    def run_or_die(self, elements, control, rng, share):
        """Run one batch; a share of them twice, as if the engine, or one of its processes, died before the commit."""
        dies = rng.random() < share
        if dies:
            self.save()
        fragments = self.run(elements, control)
        if dies:
            self.rewind()
            if rng.random() < 0.5:
                self.forget()
            assert _by_region(self.run(elements, control)) == _by_region(fragments)
        return fragments


def _by_region(fragments):
    """Return what each region, or the assembler, told; several may run the assembler, and then tell the same."""
    told = {}
    for one in fragments:
        what = one.changes, one.snapshots, one.counters
        assert told.setdefault(one.region, what) == what
    return told


class Client:
    """Holds the answer of every query as the result tuples make it, and minds their grammar."""

    def __init__(self):
        self.answers = defaultdict(dict)
        self.distances = defaultdict(dict)
        self.ranks = defaultdict(dict)
        self.places = {}
        self.quiet = set()
        self.told = []
        self.lost = set()

    def receive(self, fragments):
        """Take one batch: enter what was out, leave and move what was in."""
        rows = net(fragments)
        groups = {query for fragment in fragments for query in fragment.aggregates}
        assert events_in(rows, groups) == events_in(net([events_of(fragment) for fragment in fragments]), groups)
        boxes = bounds_of(rows["bounds"]).tolist()
        self.lost |= {
            query for f in fragments for told in f.failures if told.get("lost") for query, _ in told["queries"]
        }
        for row, box in zip(rows.drop_columns("bounds").to_pylist(), boxes, strict=True):
            answer, key = self.answers[row["query"]], member(row)
            if row["sign"] == PLACED:
                self.places[row["query"]] = row | {"box": box}
                continue
            if row["query"] in self.lost:
                continue
            assert (key in answer) == (row["sign"] != ENTERED), (SIGNS[row["sign"]], row)
            if row["sign"] == LEFT:
                del answer[key]
            else:
                assert row["sign"] in (STAYED, ENTERED)
                answer[key] = (box, row["properties"])
                self.distances[row["query"]][key] = row["distance"]
                self.ranks[row["query"]][key] = row["rank"]
            self.told.append(row)
        for fragment in fragments:
            self.check_snapshots(fragment, fragments)

    def check_snapshots(self, _, fragments):
        """A snapshot is the answer that the changes made."""
        for query in fragments[0].snapshot_queries:
            shown = {}
            for fragment in fragments:
                chosen = fragment.snapshots.filter(fragment.snapshots["query"].to_numpy() == query)
                for row, box in zip(chosen.to_pylist(), bounds_of(chosen["bounds"]).tolist(), strict=True):
                    if row["sign"] == PLACED:
                        self.check_place(row, box)
                        continue
                    assert member(row) not in shown
                    shown[member(row)] = (box, row["properties"])
                    if query in self.lost:
                        self.distances[query][member(row)], self.ranks[query][member(row)] = (
                            row["distance"],
                            row["rank"],
                        )
                    if query not in self.quiet:
                        assert row["distance"] == self.distances[query][member(row)]
                        assert row["rank"] == self.ranks[query][member(row)]
            if query in self.lost:  # it begins anew with what it is told whole
                self.lost.remove(query)
                self.answers[query] = shown
            assert shown.keys() == self.answers[query].keys()
            assert query in self.quiet or shown == self.answers[query]

    def check_place(self, row, box):
        """A snapshot tells where the query is, or that its focal object is lost, as the changes did."""
        told = self.places[row["query"]]
        if row["reason"] != SNAPSHOT:
            assert (row["reason"], told["key"]) == (EXPIRED, row["key"]) and told["reason"] in (EXPIRED, DROPPED)
        else:
            assert (told["box"], told["key"], told["distance"]) == (box, row["key"], row["distance"]), (told, row)


def events_in(rows, groups):
    """Return what enters and leaves answers, in any order; of the aggregates `groups` the thresholds."""
    columns = (rows[name].to_pylist() for name in ("query", "sign", "reason", "key", "partner_hash"))
    told = (row for row in zip(*columns, strict=True) if row[1] in (ENTERED, LEFT))
    return sorted(row for row in told if row[4] or row[0] not in groups)


def member(row):
    """Return what a result tuple is about: an object, the pair of two, or that of two reports."""
    reports = row["partner_time_us"] is not None and row["since_us"] is None
    times = (row["time_us"], row["partner_time_us"], row["window_us"]) if reports else ()
    return row["key"] if row["partner"] is None else (row["key"], row["partner"], *times)


def one(stream, key, version, box, properties, space=EARTH):
    """Return a table of one element."""
    return box_elements(stream, [key], [version], [box], [properties], space=space)

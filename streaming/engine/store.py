"""State of the servers on disk: versioned Arrow files, one version per micro-batch.

Batch *b* reads the version of *b* - 1 and writes its own version before Spark commits *b*, under a temporary name that
is then renamed. So a replayed batch reads the same state as before.
"""

import functools
import logging
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa

from streaming.errors import LookoutError
from streaming.history.snapshots import snapshots
from streaming.kinds.join.plan import STORED_PREFIX
from streaming.layers.store import LayerStore
from streaming.operators.aggregates import MEMBERS
from streaming.operators.features import Features, ordered
from streaming.servers.assembler.aggregation import Aggregation
from streaming.servers.assembler.nearest import Ranked, Ranking
from streaming.servers.assembler.server import AssemblerState
from streaming.servers.control.border import LeftOut
from streaming.servers.control.registrations import level_of, level_table
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.focals import Focals
from streaming.servers.home import Home
from streaming.servers.home import no_columns as home_columns
from streaming.servers.participant.partial import Candidates, Partial
from streaming.servers.region.member_table import MemberTable
from streaming.servers.region.member_table import no_columns as member_columns
from streaming.servers.region.objects import ObjectTable
from streaming.servers.region.objects import no_columns as object_columns
from streaming.servers.region.state import Region
from streaming.servers.sorted_runs import Run, SortedRuns
from streaming.spaces import Space

logger = logging.getLogger(__name__)

# The folders of the state that micro-batches write, one for each kind.
FOLDERS = ("registry", "home", "region", "stream_join", "participant", "partial", "assembly")
HEAD = b"head"
# The tables of a `Ranking`.
RANKING_COLUMNS = ("query", "count", "members"), ("key", "distance")
NOTHING = pa.table({})
# A state never numbers so many runs in a batch.
NUMBERS_A_BATCH = 1 << 20
REGISTRIES_KEPT = 3
# The versions of a layer before and after an edit.
VERSIONS_KEPT = 2


class LostState(LookoutError):
    """The state that a batch needs is not on disk."""


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """Write tables into one file, as Arrow IPC streams one after the other; the file appears whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with pa.OSFile(str(temporary), "wb") as sink:
        for table in tables:
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
    os.replace(temporary, path)


def read_tables(path: Path) -> list[pa.Table]:
    """Return the tables that `write_tables` wrote, mapped into memory."""
    source = pa.memory_map(str(path))
    tables = []
    while source.tell() < source.size():
        tables.append(pa.ipc.open_stream(source).read_all())
    return tables


class Store:
    """The versioned state of one engine: the registry, the home servers, the regional servers and the assembler.

    Each process keeps the newest version that it wrote or read in memory. So it reads a file only if another process
    wrote the version last.

    Parameters
    ----------
    root : Path
        The state folder; created if missing.
    space : Space
    layers, history : Path, optional
        The folders of the layers and of the stored elements with their snapshots; by default, ``layers`` and
        ``history`` in `root`.
    """

    def __init__(self, root: Path, space: Space, layers: Path | None = None, history: Path | None = None) -> None:
        self.root, self.space = root, space
        self._layers = LayerStore(layers or root / "layers")
        self._snapshots = snapshots(history or root / "history", space)
        self._features: dict[str, dict[int, Features]] = {}
        self._newest: dict[str, tuple[int, Any]] = {}
        self._registries: dict[int, Registry] = {}
        self._applied: tuple[Registry, Sequence[Mapping[str, Any]], Registry, Applied] | None = None
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True, exist_ok=True)

    def epoch(self) -> str:
        """Return the unique name of this state, made with the state folder; batch numbers count from then on."""
        path = self.root / "epoch"
        if not path.exists():
            temporary = path.with_name(f"epoch.{os.getpid()}.tmp")
            temporary.write_text(uuid.uuid4().hex)
            os.replace(temporary, path)
        return path.read_text()

    def features(self, layer: str, version: int) -> Features:
        """Return the features of a layer's version; this process keeps the last two versions of each layer in memory.

        A version that is not stored any more has no features. This is logged, not raised, so that queries go on.
        """
        versions = self._features.setdefault(layer, {})
        if version not in versions:
            try:
                versions[version] = Features(self._mapped(layer, version), self.space)
            except LookoutError as error:
                logger.error("joins with the layer %s have no answers: %s", layer, error)
                return Features.none(self.space)
            for old in sorted(versions)[:-VERSIONS_KEPT]:
                del versions[old]
        return versions[version]

    def _mapped(self, layer, version):
        """Return the table of a layer's version, mapped into memory so that all processes share its pages."""
        folder = self.root / "features" / layer
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{version}.arrow"
        if not path.exists():
            write_tables(path, [ordered(self._features_of(layer, version))])
            pa.default_memory_pool().release_unused()
            for old in sorted(_versions(folder, ".arrow"))[:-VERSIONS_KEPT]:
                (folder / f"{old}.arrow").unlink(missing_ok=True)
        return read_tables(path)[0]

    def _features_of(self, layer, version):
        stream = layer.removeprefix(STORED_PREFIX)
        store = self._layers if stream == layer else self._snapshots
        return store.read(stream, version, self.space)

    def registry(self, batch: int) -> Registry:
        """Return the registry before `batch`; only batches that change the registry write a version of it.

        What a registry that this process knows has in common with it is not read again.
        """
        version = max((v for v in _versions(self.root / "registry", ".json") if v < batch), default=-1)
        if version not in self._registries:
            registry = Registry(self.space, catalogue=self.features)
            if version >= 0:
                known = self._registries[max(self._registries)] if self._registries else registry
                head = orjson.loads((self.root / "registry" / f"{version}.json").read_bytes())
                registry = known.restored(head, [self._level(number, known) for number in head["levels"]])
            self._remember(version, registry)
        return self._registries[version]

    def _level(self, number, known):
        """Return a level of the registry, from a registry that has it or from disk."""
        for level in known.registrations.levels:
            if level.number == number:
                return level
        (table,) = read_tables(self.root / "registry" / f"level-{number}.arrow")
        return level_of(number, table, self.space)

    def applied(self, batch: int, control: Sequence[Mapping[str, Any]]) -> tuple[Registry, Applied]:
        """Return the registry after the control entries of `batch`, and what the entries did."""
        before = self.registry(batch)
        # The tasks of a process get the same entries, and share the registry that the first of them made.
        known = self._applied
        if known is None or known[0] is not before or known[1] != control:
            known = self._applied = (before, control, *before.apply(control))
        _, _, after, applied = known
        if after is not before:
            self._remember(batch, after)
        return after, applied

    def save_registry(self, batch: int, registry: Registry) -> None:
        """Write the registry after `batch`: its head, and the levels of registrations that the one before lacks."""
        folder, before = self.root / "registry", self.registry(batch)
        written = {level.number for level in before.registrations.levels}
        for level in registry.registrations.levels:
            if level.number not in written:
                write_tables(folder / f"level-{level.number}.arrow", [level_table(level)])
        path = folder / f"{batch}.json"
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_bytes(orjson.dumps(registry.head()))
        os.replace(temporary, path)
        older = sorted(version for version in _versions(folder, ".json") if version < batch)
        for version in older[:-1]:
            (folder / f"{version}.json").unlink(missing_ok=True)
        written |= {level.number for level in registry.registrations.levels}
        for level_path in folder.glob("level-*.arrow"):
            if int(level_path.stem.removeprefix("level-")) not in written:
                level_path.unlink(missing_ok=True)

    def _remember(self, version, registry):
        self._registries[version] = registry
        for old in sorted(self._registries)[:-REGISTRIES_KEPT]:
            del self._registries[old]

    def home(self, partition: int, batch: int) -> Home:
        """Return the state of a home server before `batch`."""
        return self._load(f"home/{partition}", batch, Home.empty, _read_home)

    def save_home(self, partition: int, batch: int, home: Home) -> None:
        """Write the state of a home server after `batch`."""
        self._save(f"home/{partition}", batch, home, _home_tables(home))

    def region(self, number: int, batch: int) -> Region:
        """Return the state of a regional server before `batch`."""
        return self._load(f"region/{number}", batch, lambda: Region.empty(self.space), self._read_region)

    def save_region(self, number: int, batch: int, region: Region) -> None:
        """Write the state of a regional server after `batch`."""
        self._save(f"region/{number}", batch, region, _region_tables(region))

    def regions(self, batch: int, regions: int) -> Iterator[Region]:
        """Yield the states of all regional servers before `batch`, even if some of them have run it already."""
        for number in range(regions):
            yield self._read(f"region/{number}", batch, lambda: Region.empty(self.space), self._read_region)

    def stream_joins(self, number: int, batch: int) -> Region:
        """Return the state of a region's joins with streams before `batch`; kept only while there are such joins."""
        if not self.registry(batch).reach:
            # The numbers of its runs go on where no former state of such joins has been.
            return Region.empty(self.space, batch * NUMBERS_A_BATCH)
        return self._load(f"stream_join/{number}", batch, lambda: Region.empty(self.space), self._read_region)

    def save_stream_joins(self, number: int, batch: int, state: Region) -> None:
        """Write the state of a region's joins with streams after `batch`."""
        self._save(f"stream_join/{number}", batch, state, _region_tables(state))

    def members(self, number: int, batch: int) -> pl.DataFrame:
        """Return the members of aggregates in a region before `batch`; kept while there are distributed queries."""
        if not len(self.registry(batch).distributed_ids):
            return pl.DataFrame(schema=MEMBERS)
        return self._load(f"participant/{number}", batch, lambda: pl.DataFrame(schema=MEMBERS), _read_members)

    def save_partial(self, number: int, batch: int, members: pl.DataFrame, partial: Partial) -> None:
        """Write the members that a participating server keeps after `batch`, and what it sends to the assembler."""
        found = [_arrays(part) for part in (partial.removed, partial.added)]
        named = [pa.table({name: getattr(partial, name)}) for name in ("moved", "altered", "lacking", "renewed")]
        self._save(f"partial/{number}", batch, partial, [*found, *named, _of_frame(partial.parts)])
        self._save(f"participant/{number}", batch, members, [_of_frame(members)])

    def partial(self, number: int, batch: int) -> Partial:
        """Return what a participating server sent to the assembler in `batch`."""
        return self._read(f"partial/{number}", batch + 1, lambda: None, _read_partial)

    def ended(self, batch: int, regions: int) -> bool:
        """Tell whether all regional servers have written their state of `batch`."""
        return all((self.root / "region" / str(number) / f"{batch}.arrow").exists() for number in range(regions))

    def assembly(self, batch: int) -> AssemblerState:
        """Return the state of the assembler before `batch`; it is kept while there are distributed queries."""
        if not len(self.registry(batch).distributed_ids):
            return AssemblerState.none(self.space)
        return self._read("assembly", batch, lambda: AssemblerState.none(self.space), _read_assembly)

    def save_assembly(self, batch: int, state: AssemblerState) -> None:
        """Write the state of the assembler after `batch`."""
        self._save("assembly", batch, state, _assembly_tables(state))

    def _read_region(self, path, run_of):
        return _read_region(path, run_of, self.space)

    def _load(self, name, batch, empty, read):
        state = self._read(name, batch, empty, read)
        self._newest[name] = batch - 1, state
        return state

    def _read(self, name, batch, empty, read):
        known, state = self._newest.get(name, (None, None))
        if known == batch - 1:
            return state
        if batch == 0:
            return empty()
        path = self.root / name / f"{batch - 1}.arrow"
        if not path.exists():
            raise LostState(f"batch {batch} needs the state that batch {batch - 1} left; {path} is missing")
        return read(path, _run_of(path.parent, state))

    def _save(self, name, batch, state, tables):
        """Write a version of a state: its tables, and of its tables of sorted runs those runs that no file has yet."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        before = _parts(self._newest.get(name, (None, None))[1])
        parts = _parts(state)
        for part, run in parts.items():
            if part not in before:
                write_tables(folder / f"{part}.run", run.tables())
        write_tables(folder / f"{batch}.arrow", tables)
        self._newest[name] = batch, state
        for version in _versions(folder, ".arrow"):
            if version < batch - 1:
                (folder / f"{version}.arrow").unlink(missing_ok=True)
        for path in folder.glob("*.run") if parts else ():
            if path.stem not in parts and path.stem not in before:
                path.unlink(missing_ok=True)


def _sorted_runs(state):
    """Return the tables of sorted runs that a state consists of, by name."""
    if isinstance(state, Home):
        return {"entries": state.entries}
    if isinstance(state, Region):
        return {"objects": state.objects.table, "pairs": state.pairs.table}
    return {}


def _parts(state):
    """Return the runs of a state, by the names of their files."""
    tables = _sorted_runs(state).items()
    return {f"{name}-{run.number}": run for name, table in tables for run in table.parts}


def _run_of(folder, state):
    """Return a function that returns a run of a table: as an earlier state has it, or mapped from its file."""
    known = _parts(state)

    def run_of(name, number):
        part = f"{name}-{number}"
        return known[part] if part in known else Run.of_tables(number, read_tables(folder / f"{part}.run"))

    return run_of


def _versions(folder, suffix):
    """Return the numbers of the versions in a folder."""
    stems = (entry.name.removesuffix(suffix) for entry in os.scandir(folder) if entry.name.endswith(suffix))
    return [int(stem) for stem in stems if stem.isdigit()]


def _with_head(table, head):
    return table.replace_schema_metadata({HEAD: orjson.dumps(head)})


def _head(table):
    return orjson.loads(table.schema.metadata[HEAD])


def _home_tables(home):
    head = {"entries": home.entries.head(), "now_us": home.now_us, "forgotten_us": home.forgotten_us}
    return [_with_head(NOTHING, head)]


def _read_home(path, run_of):
    head = _head(read_tables(path)[0])
    entries = SortedRuns.of_head(home_columns(), head["entries"], functools.partial(run_of, "entries"))
    return Home(entries, head["now_us"], head["forgotten_us"])


def _array(column):
    return column.to_numpy() if column.num_chunks != 1 else column.chunk(0).to_numpy()


def _region_tables(region):
    head = {name: table.head() for name, table in _sorted_runs(region).items()}
    return [_with_head(NOTHING, head | {"now_us": region.now_us, "left_out": _left_out(region.left_out)})]


def _read_region(path, run_of, space):
    head, columns = _head(read_tables(path)[0]), {"objects": object_columns(space), "pairs": member_columns()}
    objects, pairs = (
        SortedRuns.of_head(like, head[name], functools.partial(run_of, name)) for name, like in columns.items()
    )
    return Region(ObjectTable(objects), MemberTable(pairs), head["now_us"], _were_left_out(head["left_out"]))


def _left_out(queries):
    return [[query, *astuple(out)] for query, out in queries.items()]


def _were_left_out(rows):
    """Return the queries left out; the inverse of `_left_out`."""
    return {query: LeftOut(*out) for query, *out in rows}


def _arrays(columns):
    """Return a dataclass of arrays as a table, with a column for each field."""
    return pa.table({field.name: getattr(columns, field.name) for field in fields(columns)})


def _of_arrays(kind, table):
    """Return a dataclass of arrays; the inverse of `_arrays`."""
    return kind(*(_array(table[field.name]) for field in fields(kind)))


def _of_frame(frame):
    """Return a data frame as a table. Most are empty, and polars takes milliseconds even then, so these are cached."""
    return frame.to_arrow() if len(frame) else _no_rows(tuple(frame.schema.items()))


@functools.cache
def _no_rows(columns):
    return pl.DataFrame(schema=dict(columns)).to_arrow()


def _frame(table):
    """Return a table as a data frame; the inverse of `_of_frame`."""
    return pl.DataFrame(pl.from_arrow(table))


def _read_members(path, _):
    (table,) = read_tables(path)
    return _frame(table)


def _read_partial(path, _):
    removed, added, moved, altered, lacking, renewed, parts = read_tables(path)
    found = (_of_arrays(Candidates, table) for table in (removed, added))
    # Arrow packs booleans into bits, so numpy needs a copy of them.
    mask = moved["moved"].combine_chunks().to_numpy(zero_copy_only=False)
    keys = _array(lacking["lacking"]), _array(renewed["renewed"])
    return Partial(*found, mask, _array(altered["altered"]), _frame(parts), *keys)


def _assembly_tables(state):
    groups = state.aggregation
    frames = (groups.parts, groups.told, groups.crossed)
    regions = [pa.table({"query": f.searching, "reach": f.reach}) for f in (state.focals, state.following)]
    elements = _with_head(state.focals.elements, {"left_out": _left_out(state.left_out)})
    ranking = [pa.table({name: getattr(state.ranking, name) for name in names}) for names in RANKING_COLUMNS]
    return [elements, *regions, *ranking, *map(_of_frame, frames)]


def _read_assembly(path, _):
    elements, *regions = (tables := read_tables(path))[:3]
    left_out = _head(elements)["left_out"] if elements.schema.metadata else ()
    elements = elements.replace_schema_metadata(None)
    seen, following = (Focals(elements, _array(table["query"]), _array(table["reach"])) for table in regions)
    *ranked, parts, told, crossed = tables[3:]
    aggregation = Aggregation(*map(_frame, (parts, told, crossed)))
    return AssemblerState(seen, following, _ranking(ranked), aggregation, _were_left_out(left_out))


def _ranking(tables):
    """Return the candidates of kNN queries, also those that an earlier release wrote."""
    if "count" in tables[0].column_names:
        columns = zip(tables, RANKING_COLUMNS, strict=True)
        return Ranking(*(_array(table[name]) for table, names in columns for name in names))
    return Ranking.of(_of_arrays(Ranked, *tables))

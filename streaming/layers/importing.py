"""Import a file as a part of a layer: read its features in batches, transform, repair, name, sort and write them.

No step holds all features in memory: see `streaming.layers.sorting`.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import shapely

from streaming.elements import bounds_array, wrapped
from streaming.language import gettext, thousands
from streaming.layers.features import MAX_KEY_CHARACTERS, NO_FEATURE_BUT, InvalidLayer, geometry_bounds
from streaming.layers.job import Imported, Job
from streaming.layers.keys import UniqueKeys
from streaming.layers.parts import FeatureSummary, write_groups
from streaming.layers.placing import Placed, placed, transform_to
from streaming.layers.reading import Rows, TableSource, opened, sources_of
from streaming.layers.sorting import Spill
from streaming.layers.unpack import Unpacked, unpacked
from streaming.spaces import Space

# At most this many problems are listed; the others are only counted.
PROBLEMS_TOLD = 100
# Offsets in Arrow's binary columns have 31 bits, and an edit may take all features of a version as one table.
MAX_COLUMN_BYTES = 2**31 - 1
# Reading takes this share of an import, sorting and writing the rest.
READING_SHARE = 0.8
PART = "part.parquet"
KEEP = "keep"


@dataclass
class _Gathered:
    """The features read so far, on disk, with their problems, sizes and summaries."""

    spill: Spill
    keys: UniqueKeys = field(default_factory=UniqueKeys)
    summaries: list[FeatureSummary] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    problem_count: int = 0
    rows: int = 0
    column_bytes: dict[str, int] = field(default_factory=dict)

    def tell(self, message: str, **values: object) -> None:
        """Note something about the whole file, once."""
        note = gettext(message) % values
        if note not in self.notes:
            self.notes.append(note)

    def tell_rows(self, first: int, notes: Iterable[tuple[int, str]]) -> None:
        """Note what happened to rows, whose numbers begin with `first`."""
        for row, note in notes:
            self.problem_count += 1
            if len(self.problems) < PROBLEMS_TOLD:
                self.problems.append((first + row, note))


def import_file(job: Job, tell: Callable[[float], None] = lambda share: None) -> Imported:
    """Read a file that GDAL can open, or an archive of one, and write its features as a part.

    Parameters
    ----------
    job : Job
    tell : function of float
        Called now and then with the share that is done, from 0 to 1. An exception from it ends the import.

    Returns
    -------
    Imported

    Raises
    ------
    InvalidLayer
        When the file cannot be read, breaks a limit, or has no usable feature, or the space has one dimension.
    """
    if job.space.n < 2:
        raise InvalidLayer(
            "files are imported into spaces of two dimensions or more; got %(name)s", name=repr(job.space.name)
        )
    if job.wanted.edges not in ("", KEEP):
        raise InvalidLayer("edges must be keep, or empty; got %(edges)s", edges=f"{job.wanted.edges!r:.80}")
    part = job.folder / PART
    with tempfile.TemporaryDirectory(dir=job.folder) as folder:
        gathered = _Gathered(Spill(Path(folder), job.space))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # from GDAL; whatever matters fails or is counted
            _gather(gathered, unpacked(job.path, job.folder, job.limits), job, tell)
        gathered.keys.settle(lambda: gathered.spill.batches("key"))
        groups = gathered.spill.groups(
            lambda share: tell(READING_SHARE + (1 - READING_SHARE) * share),
            lambda first, keys: _checked(gathered.keys.named(first, keys)),
        )
        summary = FeatureSummary.joined(gathered.summaries, job.space)
        write_groups(part, groups, summary, job.space)
    tell(1.0)
    problems = [*((None, note) for note in gathered.notes), *gathered.problems]
    return Imported(part, summary, problems, gathered.problem_count)


def _gather(gathered: _Gathered, files: Sequence[Unpacked], job: Job, tell: Callable[[float], None]) -> None:
    """Gather the features of all files, in the coordinates of the space."""
    if job.wanted.table and len(files) > 1:
        raise InvalidLayer(
            "no table can be named where an archive holds several files; got %(table)s",
            table=repr(job.wanted.table),
        )

    sources = [source for file in files for source in sources_of(file, job.wanted, gathered.tell)]
    gathered.tell_rows(0, (note for source in sources for note in source.left_out))
    for number, source in enumerate(sources):
        _read(gathered, source, job, partial(_tell_share, tell, number, len(sources)))
    if not gathered.spill.rows:
        rows = f"{gathered.rows:,}"
        told = gathered.problems or [(0, note) for note in gathered.notes]
        if not told:
            raise InvalidLayer("a layer needs a feature with a geometry; got none in %(rows)s rows", rows=rows)
        row, problem = told[0]
        if not row:
            raise InvalidLayer(
                "a layer needs a feature with a geometry; got none in %(rows)s rows; %(problem)s",
                rows=rows,
                problem=problem,
            )
        raise InvalidLayer(NO_FEATURE_BUT, rows=rows, row=thousands(row), problem=problem)


def _tell_share(tell: Callable[[float], None], number: int, count: int, share: float) -> None:
    tell(READING_SHARE * (number + share) / count)


def _read(gathered: _Gathered, source: TableSource, job: Job, tell: Callable[[float], None]) -> None:
    """Read a table, and add its features to those gathered."""
    before = gathered.rows
    with opened(source, job.wanted) as table:
        transform = transform_to(job.space, table.crs, gathered.tell)
        for rows in table.batches:
            read = placed(rows.geometries, job.space, transform, rows.notes, job.wanted.edges == KEEP)
            _add(gathered, rows, read, job.space)
            if gathered.rows > job.limits.features:
                raise InvalidLayer(
                    "a layer may have at most %(features)s features; got more", features=thousands(job.limits.features)
                )
            tell(min(1.0, (gathered.rows - before) / table.total) if table.total else 0.0)


def _add(gathered: _Gathered, rows: Rows, read: Placed, space: Space) -> None:
    """Add a batch to those gathered."""
    gathered.tell_rows(gathered.rows + 1, sorted(read.notes.items()))
    gathered.rows += len(rows.keys)
    kept = ~shapely.is_missing(read.geometries)
    if not kept.any():
        return
    shapes = read.geometries[kept]
    bounds = wrapped(geometry_bounds(shapes, space), space)
    table = pa.table(
        {
            "key": _texts(rows.keys).filter(pa.array(kept)),
            "bounds": bounds_array(bounds),
            "geometry": pa.array(shapely.to_wkb(shapes), pa.binary()),
            "properties": _texts(rows.properties).filter(pa.array(kept)),
        }
    )
    for name in table.column_names:
        size = gathered.column_bytes.get(name, 0) + table[name].nbytes
        gathered.column_bytes[name] = size
        if size > MAX_COLUMN_BYTES:
            raise InvalidLayer(
                "the %(name)s of a layer must take at most %(max_column_bytes)s bytes; got more",
                name=name,
                max_column_bytes=thousands(MAX_COLUMN_BYTES),
            )
    gathered.keys.add(table["key"].chunk(0))
    gathered.summaries.append(FeatureSummary.of(bounds, shapes, space))
    gathered.spill.add(table)


def _texts(texts: Iterable[str]) -> pa.Array:
    return pa.array(texts, pa.string())


def _checked(keys: pa.Array) -> pa.Array:
    """Return keys, of which none may be too long."""
    lengths = pc.utf8_length(keys).to_numpy()
    if lengths.max() > MAX_KEY_CHARACTERS:
        longest = keys[int(lengths.argmax())].as_py()
        raise InvalidLayer(
            "a key must have at most %(max_key_characters)s characters; got %(longest)s",
            max_key_characters=MAX_KEY_CHARACTERS,
            longest=f"{longest!r:.80}",
        )
    return keys

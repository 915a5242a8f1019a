"""Import a file as a part of a layer: read its features in batches, transform, repair, name, sort and write them."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from streaming.elements import bounds_array, wrapped
from streaming.layers.features import MAX_KEY_CHARACTERS, InvalidLayer, geometry_bounds
from streaming.layers.job import Imported, Job
from streaming.layers.parts import write_part
from streaming.layers.placing import placed, transform_to
from streaming.layers.reading import Rows, check_sequence, opened
from streaming.layers.unpack import SEQUENCE, Unpacked, unpacked
from streaming.spaces import Space

# At most this many problems are listed; the others are only counted.
PROBLEMS_TOLD = 100
# Offsets in Arrow's binary columns have 31 bits, and all features of a version are one table.
MAX_COLUMN_BYTES = 2**31 - 1
# Reading takes this share of an import, sorting and writing the rest.
READING_SHARE = 0.8
PART = "part.parquet"


@dataclass
class _Gathered:
    """The batches read so far, with their problems and sizes."""

    tables: list[pa.Table] = field(default_factory=list)
    problems: list[tuple[int, str]] = field(default_factory=list)
    problem_count: int = 0
    rows: int = 0
    column_bytes: dict[str, int] = field(default_factory=dict)


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
        raise InvalidLayer(f"files are imported into spaces of two dimensions or more; got {job.space.name!r}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # from GDAL; whatever matters fails or is counted
        gathered = _gather(unpacked(job.path, job.folder, job.limits), job, tell)
    table = _named(gathered)
    tell(READING_SHARE + (1 - READING_SHARE) / 4)
    part = job.folder / PART
    summary = write_part(part, table, job.space)
    tell(1.0)
    return Imported(part, summary, gathered.problems, gathered.problem_count)


def _gather(files, job, tell):
    """Return the features of all files, in the coordinates of the space."""
    if job.wanted.table and len(files) > 1:
        raise InvalidLayer(f"no table can be named where an archive holds several files; got {job.wanted.table!r}")
    gathered = _Gathered()
    for number, file in enumerate(files):
        _read(gathered, file, job, lambda share, number=number: tell(READING_SHARE * (number + share) / len(files)))
    if not gathered.tables:
        reason = "; row {:,} was {}".format(*gathered.problems[0]) if gathered.problems else ""
        raise InvalidLayer(f"a layer needs a feature with a geometry; got none in {gathered.rows:,} rows{reason}")
    return gathered


def _read(gathered, file: Unpacked, job, tell):
    """Read a file, and add its features to those gathered."""
    before = gathered.rows
    with opened(file, job.wanted) as source:
        transform = transform_to(job.space, source.crs)
        for rows in source.batches:
            _add(gathered, rows, job.space, transform)
            if gathered.rows > job.limits.features:
                raise InvalidLayer(f"a layer may have at most {job.limits.features:,} features; got more")
            tell(min(1.0, (gathered.rows - before) / source.total) if source.total else 0.0)
    if file.path.suffix == SEQUENCE:
        check_sequence(file.path, gathered.rows)


def _add(gathered: _Gathered, rows: Rows, space: Space, transform) -> None:
    """Transform and repair a batch, and add it to those gathered."""
    read = placed(shapely.from_wkb(rows.geometry.to_numpy(zero_copy_only=False), on_invalid="ignore"), space, transform)
    for row, note in sorted(read.notes.items()):
        if len(gathered.problems) < PROBLEMS_TOLD:
            gathered.problems.append((gathered.rows + row + 1, note))
    gathered.problem_count += len(read.notes)
    gathered.rows += len(rows.keys)
    kept = ~shapely.is_missing(read.geometries)
    if not kept.any():
        return
    shapes = read.geometries[kept]
    table = pa.table(
        {
            "key": _texts(rows.keys).filter(pa.array(kept)),
            "bounds": bounds_array(wrapped(geometry_bounds(shapes, space), space)),
            "geometry": pa.array(shapely.to_wkb(shapes), pa.binary()),
            "properties": _texts(rows.properties).filter(pa.array(kept)),
        }
    )
    for name in table.column_names:
        size = gathered.column_bytes.get(name, 0) + table[name].nbytes
        gathered.column_bytes[name] = size
        if size > MAX_COLUMN_BYTES:
            raise InvalidLayer(f"the {name} of a layer must take at most {MAX_COLUMN_BYTES:,} bytes; got more")
    gathered.tables.append(table)


def _texts(texts: Iterable[str]) -> pa.Array:
    return pa.array(texts, pa.string())


def _named(gathered: _Gathered) -> pa.Table:
    """Return one table of all batches, in which every feature has a unique key."""
    table = pa.concat_tables(gathered.tables)
    gathered.tables.clear()
    keys = pa.array(unique_keys(table["key"].to_numpy()), pa.string())
    lengths = pc.utf8_length(keys).to_numpy()
    if lengths.max() > MAX_KEY_CHARACTERS:
        longest = keys[int(lengths.argmax())].as_py()
        raise InvalidLayer(f"a key must have at most {MAX_KEY_CHARACTERS} characters; got {longest!r:.80}")
    return table.set_column(0, "key", keys)


def unique_keys(keys: np.ndarray) -> np.ndarray:
    """Make keys unique: append ``#2`` to the second occurrence of a key, ``#3`` to the third.

    Parameters
    ----------
    keys : ndarray of str, shape (N,)

    Returns
    -------
    ndarray of object, shape (N,)

    Examples
    --------
    >>> unique_keys(np.array(["a", "b", "a", "a#2"], dtype=object)).tolist()
    ['a', 'b', 'a#2', 'a#2#2']
    """
    different = pd.Series(keys, dtype=object)
    while (repeated := different.duplicated()).any():
        turn = different.groupby(different, sort=False).cumcount()[repeated] + 1
        different[repeated] = different[repeated] + "#" + turn.astype(str)
    return different.to_numpy()

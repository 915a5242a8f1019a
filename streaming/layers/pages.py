"""Pages: the features of a part, copied to a local file such that a process reads only those that it needs.

A page is a few thousand features that are neighbours. The file begins with the pages, each an Arrow stream. After them
come their boxes, and the keys of all features with the page of each. All of it is mapped into memory, so that the
processes of a machine share what they read.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of
from streaming.layers.features import InvalidLayer
from streaming.layers.parts import around
from streaming.spaces import Space
from streaming.state.files import whole
from streaming.state.tables import ALIGNMENT, serialized, tables_in

SUFFIX = ".pages"
# The file ends with the place of its index, a number of so many bytes.
PLACE_BYTES = 8


@dataclass(frozen=True)
class Pages:
    """The pages of one part; features that a later part replaces are among them.

    Parameters
    ----------
    name : str
        The name of the part; parts of one name have the same features.
    boxes : ndarray of float64, shape (P, 2n)
        The box around the features of each page.
    key_hash : ndarray of int64, shape (M,)
        Of all features, ascending.
    page : ndarray of int32, shape (M,)
        The page of each feature.
    digest : ndarray of uint64, shape (M,)
        Features that differ in anything have, almost certainly, different digests.
    read : callable
        Given the number of a page, returns its features, with `features.feature_schema`, ordered by `key_hash`.
    """

    name: str
    boxes: np.ndarray
    key_hash: np.ndarray
    page: np.ndarray
    digest: np.ndarray
    read: Callable[[int], pa.Table]

    @classmethod
    def of(cls, name: str, table: pa.Table, space: Space) -> "Pages":
        """Return features in memory, ordered by `key_hash`, as one page."""
        box = np.array([around(bounds_of(table["bounds"]), space)])
        page = np.zeros(table.num_rows, dtype=np.int32)
        return cls(name, box, table["key_hash"].to_numpy(), page, _digests(table), lambda _: table)


def write_pages(path: Path, tables: Iterable[pa.Table], space: Space) -> None:
    """Write the pages of a part, one table after the other; the file appears whole or not at all.

    Raises
    ------
    InvalidLayer
        When keys repeat.
    """
    places, boxes, keys = [], [np.empty((0, 2 * space.n))], []
    with whole(path, durable=False) as temporary, temporary.open("wb") as file:
        for number, table in enumerate(tables):
            ordered = table.take(pa.array(np.argsort(table["key_hash"].to_numpy()))).combine_chunks()
            places.append(_append(file, ordered))
            boxes.append(np.array([around(bounds_of(ordered["bounds"]), space)]))
            page = np.full(ordered.num_rows, number, dtype=np.int32)
            keys.append(pa.table({"key_hash": ordered["key_hash"], "page": page, "digest": _digests(ordered)}))
        offset, size = np.array(places, dtype=np.int64).reshape(-1, 2).T
        index = pa.table({"box": bounds_array(np.concatenate(boxes)), "offset": offset, "size": size})
        place, _ = _append(file, index, *_by_key(keys))
        file.write(place.to_bytes(PLACE_BYTES, "little"))


def mapped_pages(path: Path) -> Pages:
    """Return the pages in a file, mapped into memory."""
    with pa.memory_map(str(path)) as source:
        content = source.read_buffer()
    place = int.from_bytes(content.slice(content.size - PLACE_BYTES).to_pybytes(), "little")
    index, keys = tables_in(content.slice(place, content.size - PLACE_BYTES - place))
    offset, size = index["offset"].to_pylist(), index["size"].to_pylist()
    return Pages(
        path.stem,
        bounds_of(index["box"]),
        keys["key_hash"].to_numpy(),
        keys["page"].to_numpy(),
        keys["digest"].to_numpy(),
        lambda number: tables_in(content.slice(offset[number], size[number]))[0],
    )


def _append(file: IO[bytes], *tables: pa.Table) -> tuple[int, int]:
    """Write tables at the end of a file; return their place and their size."""
    file.write(bytes(-file.tell() % ALIGNMENT))
    place, content = file.tell(), serialized(tables)
    file.write(content)
    return place, content.size


def _by_key(tables: Iterable[pa.Table]) -> list[pa.Table]:
    """Return the keys of all pages, ascending, as a list of one table."""
    schema = pa.schema([("key_hash", pa.int64()), ("page", pa.int32()), ("digest", pa.uint64())])
    keys = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in tables)])
    hashes = keys["key_hash"].to_numpy()
    order = np.argsort(hashes)
    if (np.diff(hashes[order]) == 0).any():
        raise InvalidLayer("the keys of a layer must differ; got one twice")
    return [keys.take(pa.array(order)).combine_chunks()]


def _digests(table: pa.Table) -> np.ndarray:
    return pl.DataFrame(pl.from_arrow(table)).hash_rows(0).to_numpy()

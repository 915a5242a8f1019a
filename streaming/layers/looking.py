"""Look into a file before its import: its tables, reference system, properties, and the first rows as they are read."""

from dataclasses import replace
from typing import Any

import orjson

from streaming.language import gettext
from streaming.layers.job import Job
from streaming.layers.reading import TableSource, opened, sources_of
from streaming.layers.tables import ALL, SINGLE, tables_in
from streaming.layers.texts import TEXTS
from streaming.layers.unpack import Unpacked, unpacked

ROWS_SHOWN = 3


def look(job: Job) -> dict[str, Any]:
    """Return what is in a file that may be imported; of an archive of several files, in the first with rows.

    Parameters
    ----------
    job : Job
        With the options of the import; the encoding and the table matter for the rows.

    Returns
    -------
    dict
        ``tables``: a list of ``name``, ``kind``, ``features``, empty if there is one; ``table``: what is read if none
        is named, empty if one must be; ``crs``: the file's, or null; ``encoded``: whether its texts may be in another
        encoding than UTF-8; ``columns``: the names of the properties; ``rows``: the first rows, each a list of
        properties in that order; ``notes``: what was guessed.

    Raises
    ------
    InvalidLayer
        When the file cannot be read.
    """
    notes: list[str] = []

    def tell(message: str, **values: object) -> None:
        notes.append(gettext(message) % values)

    file, *others = unpacked(job.path, job.folder, job.limits)
    sources = sources_of(file, replace(job.wanted, table=ALL), tell)
    named = [source for source in sources if source.table == job.wanted.table]
    more = [source for one in others for source in sources_of(one, job.wanted, tell)]
    crs: str | None = None
    rows: list[dict[str, Any]] = []
    for source in [*named, *sources, *more]:
        crs, rows = _first_rows(source, job)
        if rows:
            break
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "tables": _tables(file, sources),
        "table": ALL if file.path.suffix == ".kml" and len(sources) > 1 else "",
        "crs": crs,
        "encoded": file.path.suffix in (*TEXTS, ".shp"),
        "columns": columns,
        "rows": [[row.get(name) for name in columns] for row in rows[:ROWS_SHOWN]],
        "notes": notes,
    }


def _first_rows(source: TableSource, job: Job) -> tuple[str | None, list[dict[str, Any]]]:
    """Return the reference system of a table, and the properties of its first rows that show which there are."""
    with opened(replace(source, labels={}), replace(job.wanted, key="", crs="")) as table:
        batch = next(table.batches, None)
    properties = batch.properties[:100] if batch else []
    return table.crs, [orjson.loads(one) for one in properties]


def _tables(file: Unpacked, sources: list[TableSource]) -> list[dict[str, Any]]:
    if file.path.suffix in SINGLE or len(sources) < 2:
        return []
    names = {source.table for source in sources}
    known = [table for table in tables_in(sources[0].path) if table.name in names]
    return [{"name": one.name, "kind": one.kind, "features": one.features} for one in known]

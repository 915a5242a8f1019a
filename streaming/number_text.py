"""Numbers in the text of JSON objects, and in other texts."""

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc


def number_of_text(text: pl.Expr) -> pl.Expr:
    """Return texts as numbers, null where a text is none; true and false are 1 and 0."""
    return text.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)


def read_numbers(objects: pa.StringArray, rows: np.ndarray, names: Sequence[str], into: np.ndarray) -> np.ndarray:
    """Read the numbers of JSON objects by compiled code.

    Parameters
    ----------
    objects : pyarrow.StringArray, length N
    rows : ndarray of int64, shape (K,)
        Which objects are read, each once.
    names : sequence of str, length F
        Of the properties that are read, each once.
    into : ndarray of float64, shape (F, K)
        Gets the numbers. NaN where a property is missing, or no number; 1 and 0 for true and false.

    Returns
    -------
    ndarray of int64
        The places in `rows`, ascending, of objects that were not read: those with blanks, with a value that is an array
        or an object, or with an escape in a name or in the value of one of these properties.

    Examples
    --------
    >>> objects = pa.array(['{"a":5,"c":"x","b":-7.5}', '{"b":"8"}', '{"c":[1]}'])
    >>> numbers = np.empty((2, 3))
    >>> read_numbers(objects, np.arange(3), ["a", "b"], numbers).tolist()
    [2]
    >>> numbers[:, :2].tolist()
    [[5.0, nan], [-7.5, 8.0]]
    """
    from streaming.compiled_json import scan

    _, offsets, text = objects.buffers()
    offsets = np.frombuffer(offsets or bytes(4), dtype=np.int32)[objects.offset :][: len(objects) + 1]
    text = np.frombuffer(text or b"{", dtype=np.uint8)
    encoded = [name.encode() for name in names]
    name_ends = np.cumsum([0, *map(len, encoded)]).astype(np.uint64)
    read = np.empty(len(rows), dtype=bool)
    cells, texts = np.empty(into.size, dtype=np.int64), np.empty((into.size, 2), dtype=np.int32)
    sought = np.frombuffer(b"".join(encoded) or b"{", dtype=np.uint8)
    if left := scan(text, offsets, rows, sought, name_ends, into, read, cells, texts):
        order = np.argsort(texts[:left, 0], kind="stable")
        into[np.divmod(cells[order], len(rows))] = _cast(text, texts[order])
    if objects.null_count:
        absent = ~objects.is_valid().to_numpy(zero_copy_only=False)[rows]
        into[:, absent], read[absent] = np.nan, True
    return np.flatnonzero(~read)


def _cast(text: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the numbers in a text between K pairs of places, int32 (K, 2), ascending; NaN where there is none."""
    between = pa.StringArray.from_buffers(2 * len(places) - 1, pa.py_buffer(places), pa.py_buffer(text))
    parts = between.take(pa.array(np.arange(0, len(between), 2)))
    if (text[places[:, 0] - 1] != ord('"')).all():
        try:
            return pc.cast(parts, pa.float64()).to_numpy()  # a third of the time, for numbers of many digits
        except pa.ArrowInvalid:
            pass
    told = pl.DataFrame({"text": pl.from_arrow(parts)}).select(number_of_text(pl.col("text")))
    return told["text"].fill_null(float("nan")).to_numpy()

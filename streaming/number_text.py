"""The numbers of JSON objects that are alike: the same keys in the same order, each with a number, and no spaces.

Most streams send such objects. They differ in their numbers alone, so these are what lies between texts that are known,
and no JSON needs to be decoded.
"""

from collections.abc import Sequence

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc


def numbers_of_alike(objects: pa.StringArray, keys: Sequence[str]) -> np.ndarray | None:
    """Return the numbers of JSON objects that are alike.

    Parameters
    ----------
    objects : pyarrow.StringArray, length N
    keys : sequence of str, length K
        In the order in which the objects have them; at least one.

    Returns
    -------
    ndarray of float64, shape (N, K), or None
        None if an object has other keys, another order, spaces, or a value that is no number.

    Examples
    --------
    >>> numbers_of_alike(pa.array(['{"a":5,"b":-7.5}', '{"a":1e2,"b":0}']), ["a", "b"]).tolist()
    [[5.0, -7.5], [100.0, 0.0]]
    >>> numbers_of_alike(pa.array(['{"a":5,"b":-7.5}', '{"b":0,"a":5}']), ["a", "b"])
    """
    begins = [(b"," if place else b"{") + orjson.dumps(key) + b":" for place, key in enumerate(keys)]
    around = np.frombuffer(b"".join((*begins, b"}")), dtype=np.uint8)
    text, ends = _text(objects)
    colons = np.flatnonzero(text == ord(":"))
    if len(colons) != len(objects) * len(keys) or objects.null_count or (around == ord(":")).sum() != len(keys):
        return None
    # A value begins behind a colon, and ends where the next key begins. The rest is before, between and behind values.
    cuts = np.empty((len(objects), len(keys), 2), dtype=np.int32)
    cuts[..., 0] = colons.reshape(len(objects), len(keys)) + 1
    cuts[:, :-1, 1] = cuts[:, 1:, 0] - list(map(len, begins[1:]))
    cuts[:, -1, 1] = ends - 1
    cuts = np.concatenate([[0], cuts.ravel(), [len(text)]], dtype=np.int32)
    if (cuts[1:] < cuts[:-1]).any():
        return None
    parts = pa.StringArray.from_buffers(len(cuts) - 1, pa.py_buffer(cuts), pa.py_buffer(text))
    # Each of the other parts but the last ends with a colon, and there are no more colons. So if all of them together
    # are what lies around the values of each object, each is in its place.
    rest, _ = _text(parts.take(pa.array(np.arange(0, len(parts), 2))))
    if len(rest) != len(objects) * len(around) or (rest.reshape(len(objects), -1) != around).any():
        return None
    try:
        values = pc.cast(parts.take(pa.array(np.arange(1, len(parts), 2))), pa.float64())
    except pa.ArrowInvalid:
        return None
    return values.to_numpy().reshape(len(objects), len(keys))


def _text(strings):
    """Return the text of strings, one after the other, as bytes, uint8 of shape (B,), and where each ends."""
    _, offsets, text = strings.buffers()
    offsets = np.frombuffer(offsets, dtype=np.int32)[strings.offset : strings.offset + len(strings) + 1]
    text = np.frombuffer(text or b"", dtype=np.uint8)
    return text[offsets[0] : offsets[-1]], offsets[1:] - offsets[0]

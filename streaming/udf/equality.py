"""Filters that compare keys or properties for equality."""

import re

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from streaming.errors import InvalidFilter
from streaming.property_columns import PropertyColumns, text_column

# RFC 8259, section 6.
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_KEY_AND_VALUE = re.compile(r'\s*(?:"([^"]+)"|([^":]+?))\s*:\s*(.*?)\s*', re.DOTALL)


class KeyEquals:
    """Passes elements whose key is the argument, and pairs in which at least one side has that key."""

    def filter_element(self, elements: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which elements have the key."""
        if not argument:
            raise InvalidFilter("argument must be a key; got an empty one")
        return pc.equal(elements["key"], argument).to_numpy(zero_copy_only=False)

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs have the key on at least one side."""
        return self.filter_element(elements, argument) | self.filter_element(features, argument)


class PropertyEquals:
    """Passes elements with the property of the argument ``key:value``, and pairs in which at least one side has it."""

    def filter_element(self, elements: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which elements have the property."""
        return has_property(elements, *key_and_value(argument))

    def filter_pair(self, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str) -> np.ndarray:
        """Tell which pairs have the property on at least one side."""
        key, value = key_and_value(argument)
        return has_property(elements, key, value) | has_property(features, key, value)


def key_and_value(text: str) -> tuple[str, str]:
    """Return the two parts of ``key:value``; the key ends at the first colon, unless it stands in double quotes.

    Raises
    ------
    LookoutError
        If the text does not have this form.

    Examples
    --------
    >>> key_and_value("name: Elizabeth Street"), key_and_value('"addr:street":Lamar')
    (('name', 'Elizabeth Street'), ('addr:street', 'Lamar'))
    """
    match = _KEY_AND_VALUE.fullmatch(text)
    if match is None:
        raise InvalidFilter("argument must be of the form key:value; got %(text)s", text=f"{text!r:.200}")
    quoted, plain, value = match.groups()
    return quoted or plain, value


def has_property(batch: pa.RecordBatch, key: str, value: str) -> np.ndarray:
    """Tell which rows have a property with a value.

    Parameters
    ----------
    batch : pyarrow.RecordBatch, N rows
        With the column properties.
    key, value : str
        Values are compared as text, but a number equals every way to write it: 4 equals 4.0.

    Returns
    -------
    ndarray of bool, shape (N,)
    """
    text = text_column(key)
    same = text == value
    if re.fullmatch(_NUMBER, value):
        number = pl.when(text.str.contains(f"^{_NUMBER}$")).then(text).cast(pl.Float64, strict=False)
        same |= number == float(value)
    return PropertyColumns(batch["properties"]).passing(same)

"""Layers: named, versioned, stored tables of features.

References
----------
BBoxDB Streams (2022), section 4.4.2: a continuous spatial join compares a stream with stored tuples.
"""

from streaming.layers.features import InvalidLayer, check_name, feature_schema, feature_table
from streaming.layers.job import Imported, Job, Limits, Wanted
from streaming.layers.parts import Summary
from streaming.layers.store import Conflict, LayerStore, Manifest
from streaming.layers.unpack import suffixes_of

__all__ = [
    "Conflict",
    "Imported",
    "InvalidLayer",
    "Job",
    "LayerStore",
    "Limits",
    "Manifest",
    "Summary",
    "Wanted",
    "check_name",
    "feature_schema",
    "feature_table",
    "suffixes_of",
]

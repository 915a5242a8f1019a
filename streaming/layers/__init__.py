"""Layers: named, versioned, stored tables of features.

References
----------
BBoxDB Streams (2022), section 4.4.2: a continuous spatial join compares a stream with stored tuples.
"""

from streaming.layers.features import InvalidLayer, check_name, feature_schema, feature_table
from streaming.layers.job import Imported, ImportLimits, ImportOptions, Job
from streaming.layers.parts import FeatureSummary
from streaming.layers.store import Conflict, LayerManifest, LayerStore
from streaming.layers.unpack import suffixes_of

__all__ = [
    "Conflict",
    "FeatureSummary",
    "ImportLimits",
    "ImportOptions",
    "Imported",
    "InvalidLayer",
    "Job",
    "LayerManifest",
    "LayerStore",
    "check_name",
    "feature_schema",
    "feature_table",
    "suffixes_of",
]

"""Layers: named, versioned, stored tables of features.

References
----------
BBoxDB Streams (2022), section 4.4.2: a continuous spatial join compares a stream with stored tuples.
"""

from streaming.layers.features import feature_schema, feature_table
from streaming.layers.store import Conflict, InvalidLayer, LayerStore, Manifest

__all__ = ["Conflict", "InvalidLayer", "LayerStore", "Manifest", "feature_schema", "feature_table"]

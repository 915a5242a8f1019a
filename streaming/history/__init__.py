"""The history: the stored elements of streams, and questions (one-time queries) to them and to layers.

References
----------
BBoxDB Streams (2022), sections 3.2 and 4.1: the stored elements of a stream are a table like any other.
"""

from streaming.history.errors import InvalidQuestion
from streaming.history.found import FoundRows, RowLimits
from streaming.history.joins import joined_schema
from streaming.history.reader import EVER, History
from streaming.history.tables import StoredTables, Table, layer, parse_table, stored
from streaming.history.writer import HistoryWriter, Turn

__all__ = [
    "EVER",
    "FoundRows",
    "History",
    "HistoryWriter",
    "InvalidQuestion",
    "RowLimits",
    "StoredTables",
    "Table",
    "Turn",
    "joined_schema",
    "layer",
    "parse_table",
    "stored",
]

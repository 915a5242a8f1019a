"""User-defined filters: Python classes that judge the rows of Arrow batches, and that plans name.

References
----------
BBoxDB Streams (2022), section 3.6: user-defined filters refine what the boxes alone have found.
"""

from streaming.udf.base import COLUMNS, UserDefinedFilter, shapes_of
from streaming.udf.evaluation import Judged, check_filter, evaluate_element, evaluate_pair
from streaming.udf.registry import BUILT_IN, GROUP, filter_names, filter_of, filter_places

__all__ = [
    "BUILT_IN",
    "COLUMNS",
    "GROUP",
    "Judged",
    "UserDefinedFilter",
    "check_filter",
    "evaluate_element",
    "evaluate_pair",
    "filter_names",
    "filter_of",
    "filter_places",
    "shapes_of",
]

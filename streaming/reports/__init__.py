"""Reports over stored elements: who was in an area, how long, how far objects went, and where they stopped.

docs/reports.md defines every word.
"""

from streaming.reports.areas import Area, box_area, drawn_area, polygon_area, ring_area, shape_area
from streaming.reports.days import days_of
from streaming.reports.errors import InvalidReport
from streaming.reports.fixes import Fixes, ReportLimits, in_order, read_fixes
from streaming.reports.report import Report, ReportTerms

__all__ = [
    "Area",
    "Fixes",
    "InvalidReport",
    "Report",
    "ReportLimits",
    "ReportTerms",
    "box_area",
    "days_of",
    "drawn_area",
    "in_order",
    "polygon_area",
    "read_fixes",
    "ring_area",
    "shape_area",
]

"""Encounters: pairs of objects that stay near each other for a while.

Home servers put reports in the order of event time (`ordering.py`), regions find the spans in which pairs are near, and
the assembler joins the spans of all regions. Begin with `region.py`.
"""

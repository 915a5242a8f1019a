"""Joins with a stream: each region compares its own objects with elements of a stream, some of other regions.

The assembler has no part in them. Begin with `region.py`.
"""

"""Queries that move with a focus, or ask for one answer of all regions: moving ranges, nearest neighbours, aggregates.

Regions are participants, which send parts of answers (`participant.py`), and the assembler makes one answer of them.
Begin with `participant.py`.
"""

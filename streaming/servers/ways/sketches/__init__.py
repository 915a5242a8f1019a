"""Sketches: regions sketch what home servers observed, and queries ask the sketches of all regions together.

Queries are answered in turns (`pacing.py`), and only with the leaves that they need (`asked_leaves.py`). Begin with
`region.py`.
"""

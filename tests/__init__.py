"""Tests of Lookout, by rooms.

A random history draws its decisions from hypothesis (tests/draws.py), so that one that fails shrinks; dense numbers,
which cannot shrink, come from a table of seeds, of which each run takes a quarter (tests/house/seeds.py).
"""

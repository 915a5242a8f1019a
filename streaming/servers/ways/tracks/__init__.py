"""Tracks: visits, stops and ways of objects, as each home server follows its own.

Regions pass on what the home servers tell. Begin with `home.py`.
"""

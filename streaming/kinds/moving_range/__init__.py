"""Continuous range queries about a focus, which may move."""

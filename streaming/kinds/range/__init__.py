"""Continuous range queries over fixed boxes."""

"""Joins of two streams whose times differ by an interval."""

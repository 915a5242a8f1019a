"""Continuous spatial joins with layers, streams and stored elements."""

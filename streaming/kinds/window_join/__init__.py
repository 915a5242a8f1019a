"""Joins of two streams within windows of event time."""

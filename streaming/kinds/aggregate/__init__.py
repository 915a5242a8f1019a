"""Continuous aggregates over the answers of range queries."""

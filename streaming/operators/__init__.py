"""Operators: pure functions of arrays."""

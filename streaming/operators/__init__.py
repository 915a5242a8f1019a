"""Operators: pure functions over arrays."""

"""Answers: their members, how two of them differ and why, who is told, and the result tuples of it."""

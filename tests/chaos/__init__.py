"""Faults on purpose, while a whole Lookout answers queries: ``python -m tests.chaos``, and ``make chaos``."""

"""Errors of back-tests."""

from streaming.errors import LookoutError


class InvalidBacktest(LookoutError):
    """A back-test that cannot be made; the message says the rule and the value."""

"""The error of a report."""

from streaming.errors import LookoutError


class InvalidReport(LookoutError):
    """A report breaks a rule or exceeds a limit."""

"""The error of a question to a table."""

from streaming.errors import LookoutError


class InvalidQuestion(LookoutError):
    """A question to a table breaks a rule or exceeds a limit."""

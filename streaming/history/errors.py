"""What can be wrong with a question to a table."""

from streaming.errors import LookoutError


class InvalidQuestion(LookoutError):
    """A question to a table breaks a rule, or takes more than it may."""

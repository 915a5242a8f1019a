"""Errors about the state of an engine."""

from streaming.errors import LookoutError


class LostState(LookoutError):
    """The state that a batch needs is not there, or no state is whole."""


class OtherSettings(LookoutError):
    """The state was written with other settings."""

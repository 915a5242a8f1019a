"""Errors that a person can act on: each message states the rule, then the value that broke it."""


class LookoutError(ValueError):
    """Base of every error that Lookout raises on purpose."""


class InvalidSpace(LookoutError):
    """A space, or bounds in it, break a rule."""


class InvalidPlan(LookoutError):
    """A query plan breaks a rule."""


class InvalidOptions(LookoutError):
    """The options of a stream's transport or decoder break a rule."""

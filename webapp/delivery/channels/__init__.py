"""Channels by kind: the built-in ones, and those that other packages offer by an entry point.

A package adds a kind by an entry point of the group ``lookout.channels``. The entry point's name is the kind. Its
object is a class derived from `base.ChannelBackend`.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint
from typing import Any

from streaming.decoders.options import OptionDescription
from streaming.entry_points import known_kinds
from streaming.errors import InvalidOptions
from webapp.delivery.channels.base import ChannelBackend

GROUP = "lookout.channels"

BUILT_IN = {
    "email": "webapp.delivery.channels.email:EmailChannel",
    "webhook": "webapp.delivery.channels.webhook:WebhookChannel",
    "slack": "webapp.delivery.channels.slack:SlackChannel",
    "mqtt": "webapp.delivery.channels.mqtt:MqttChannel",
    "push": "webapp.delivery.channels.push:PushChannel",
}


def _kinds() -> dict[str, EntryPoint]:
    return known_kinds(GROUP, BUILT_IN)


def channel_kinds() -> list[str]:
    """Return the kinds that `make_channel` knows, sorted."""
    return sorted(_kinds())


def channel_class(kind: str) -> type[ChannelBackend]:
    """Return the class of a kind.

    Raises
    ------
    InvalidOptions
        When there is no such kind, or it cannot be loaded.
    """
    kinds = _kinds()
    if kind not in kinds:
        raise InvalidOptions(
            "a channel's kind must be one of %(kinds)s; got %(kind)s", kinds=", ".join(sorted(kinds)), kind=repr(kind)
        )
    try:
        return kinds[kind].load()
    except ImportError as error:
        raise InvalidOptions(
            "a channel's kind must be one that loads; got %(kind)s: %(error)s", kind=repr(kind), error=error
        ) from error


def options_of(kind: str) -> list[OptionDescription]:
    """Return the options of a kind, in order, without its secrets."""
    return [option for option in channel_class(kind).options_class.describe() if option.name not in secrets_of(kind)]


def secrets_of(kind: str) -> list[str]:
    """Return the names of the secrets of a kind, in order."""
    return channel_class(kind).options_class.secret_names()


def make_channel(kind: str, options: Mapping[str, Any], secrets: Mapping[str, Any]) -> ChannelBackend:
    """Return a channel; it opens no connection yet.

    Raises
    ------
    InvalidOptions
        When the kind is unknown, its options break a rule, or its host is out of reach.

    Examples
    --------
    >>> make_channel("webhook", {"url": "https://a.example/alarms"}, {}).options.url
    'https://a.example/alarms'
    """
    made = channel_class(kind)
    return made(made.options_class.parse({**options, **secrets}))

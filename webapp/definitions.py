"""Stream definitions: what the gateway and the engine are told of the streams in the database."""

import json
import logging

import redis
from django.conf import settings
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from streaming.logs import STREAMS_CHANNEL, STREAMS_KEY
from webapp.models import Stream
from webapp.redis import client, log

logger = logging.getLogger(__name__)


def publish(stream: Stream) -> None:
    """Tell the gateway how to run a stream, if it does not know, and the engine how long its objects live."""
    document = json.dumps(stream.definition(settings.SPACE))
    if client().hget(STREAMS_KEY, stream.name) != document.encode():
        client().hset(STREAMS_KEY, stream.name, document)
        client().publish(STREAMS_CHANNEL, stream.name)
    log().send("stream", stream=stream.name, ttl_s=stream.ttl_s)


def withdraw(name: str) -> None:
    """Tell the gateway to stop a stream and to forget it, and the engine to drop its objects."""
    client().hdel(STREAMS_KEY, name)
    client().publish(STREAMS_CHANNEL, name)
    log().send("drop_stream", stream=name)


def republish_streams() -> int:
    """Make Redis say what the database says, and return the number of streams."""
    streams = list(Stream.objects.all())
    known = {name.decode() for name in client().hkeys(STREAMS_KEY)}
    for name in known - {stream.name for stream in streams}:
        withdraw(name)
    for stream in streams:
        publish(stream)
    return len(streams)


@receiver(post_save, sender=Stream)
def _saved(instance, raw=False, **_):
    if not raw:
        transaction.on_commit(lambda: _tell(publish, instance))


@receiver(post_delete, sender=Stream)
def _deleted(instance, **_):
    transaction.on_commit(lambda: _tell(withdraw, instance.name))


def _tell(tell, about):
    # The database is the truth: without Redis (a command run before the start) the next start republishes.
    try:
        tell(about)
    except redis.ConnectionError as error:
        logger.warning("the change of stream %s is told at the next start: %s", about, error)

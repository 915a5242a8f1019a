"""Publish the spaces and streams of the database to the gateway, the supervisor, the engines and connections."""

import json
from collections.abc import Callable

from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from streaming.keys import PARTITIONERS_KEY, SPACES_KEY, STREAMS_CHANNEL, STREAMS_KEY
from streaming.redis_client import read_hash
from streaming.spaces import EARTH, space_text
from webapp.bus.notify import announce_definitions
from webapp.bus.redis import client, log
from webapp.bus.telling import tell
from webapp.models import DeletedQuery, EventCursor, Space, Stream


def publish_space(space: Space) -> None:
    """Publish a space to gateway, supervisor and its engine, where it differs from what is published."""
    if space.partitioner:
        client().hset(PARTITIONERS_KEY, space.name, space.partitioner)
    else:
        client().hdel(PARTITIONERS_KEY, space.name)
    text = space_text(space.parsed)
    if client().hget(SPACES_KEY, space.name) != text.encode():
        client().hset(SPACES_KEY, space.name, text)
        client().publish(STREAMS_CHANNEL, space.name)


def withdraw_space(name: str) -> None:
    """Tell gateway and supervisor to forget a space."""
    client().hdel(SPACES_KEY, name)
    client().hdel(PARTITIONERS_KEY, name)
    client().publish(STREAMS_CHANNEL, name)


def publish(stream: Stream) -> None:
    """Publish a stream to the gateway if its definition differs, and tell the engine what to do with it."""
    document = json.dumps(stream.definition())
    if client().hget(STREAMS_KEY, stream.name) != document.encode():
        client().hset(STREAMS_KEY, stream.name, document)
        client().publish(STREAMS_CHANNEL, stream.name)
    told = {"ttl_s": stream.ttl_s, "stored": stream.stored, "sketch": stream.sketch}
    log(stream.space_name).send("stream", stream=stream.name, **told)


def withdraw(name: str, space: str) -> None:
    """Tell the gateway to stop and forget a stream, and the engine of its space to drop the stream's objects."""
    client().hdel(STREAMS_KEY, name)
    client().publish(STREAMS_CHANNEL, name)
    log(space).send("drop_stream", stream=name)


def republish() -> int:
    """Bring the spaces and streams published in Redis up to date with the database; return the number of streams."""
    before = streams_before, spaces_before = _published()
    spaces, streams = list(Space.objects.all()), list(Stream.objects.all())
    for space in spaces:
        publish_space(space)
    known = {name.decode(): json.loads(document) for name, document in streams_before.items()}
    for name in known.keys() - {stream.name for stream in streams}:
        withdraw(name, known[name].get("space", EARTH.name))
    for stream in streams:
        publish(stream)
    for name in {name.decode() for name in spaces_before} - {space.name for space in spaces}:
        withdraw_space(name)
    if _published() != before:
        announce_definitions()
    return len(streams)


def _published() -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    return read_hash(client(), STREAMS_KEY), read_hash(client(), SPACES_KEY)


@receiver(post_save, sender=Space)
def _space_saved(instance: Space, raw: bool = False, **_: object) -> None:
    if not raw:
        transaction.on_commit(lambda: _tell(f"the space {instance.name}", publish_space, instance))


@receiver(post_delete, sender=Space)
def _space_deleted(instance: Space, **_: object) -> None:
    name = instance.name  # Django clears the key once the row is gone
    EventCursor.objects.filter(space=name).delete()
    DeletedQuery.objects.filter(space=name).delete()  # its engine ends with it
    transaction.on_commit(lambda: _tell(f"the space {name}", withdraw_space, name))


@receiver(post_save, sender=Stream)
def _saved(instance: Stream, raw: bool = False, **_: object) -> None:
    if not raw:
        transaction.on_commit(lambda: _tell(f"the stream {instance.name}", publish, instance))


@receiver(post_delete, sender=Stream)
def _deleted(instance: Stream, **_: object) -> None:
    transaction.on_commit(lambda: _tell(f"the stream {instance.name}", withdraw, instance.name, instance.space_id))


def _tell(about: str, publish_or_withdraw: Callable[..., None], *arguments: object) -> None:
    tell(about, lambda: publish_or_withdraw(*arguments))
    announce_definitions()

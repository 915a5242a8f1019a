"""What the web application publishes in Redis for gateways, engines and supervisors."""

import logging
from collections.abc import Iterator
from typing import Any

import orjson
import redis

from streaming.errors import InvalidSpace
from streaming.keys import SPACES_KEY, STREAMS_KEY
from streaming.redis_client import read_hash
from streaming.spaces import EARTH, Space, parse_space

logger = logging.getLogger(__name__)


def published_spaces(client: redis.Redis) -> dict[str, Space]:
    """Return the spaces that are published, and the built-in one, by name."""
    spaces = {EARTH.name: EARTH}
    for name, text in read_hash(client, SPACES_KEY).items():
        try:
            spaces.setdefault(name.decode(), parse_space(text))
        except InvalidSpace as error:  # from a later release: the other spaces must go on
            logger.warning("space %s is left out: %s", name.decode(), error)
    return spaces


def published_streams(client: redis.Redis, space: str) -> Iterator[dict[str, Any]]:
    """Yield the keys of the control entry that defines each stream of a space; see `logs.control_entry`."""
    for name, text in read_hash(client, STREAMS_KEY).items():
        if space_name(text) == space:
            yield {
                "stream": name.decode(),
                **{key: orjson.loads(text).get(key) for key in ("ttl_s", "stored", "sketch")},
            }


def space_name(payload: bytes) -> str:
    """Return the space's name in a stream's definition or in its health; empty if there is none."""
    try:
        document = orjson.loads(payload)
    except orjson.JSONDecodeError:
        return ""
    space = document.get("space") if isinstance(document, dict) else None
    return space if isinstance(space, str) else ""

"""What the web application publishes in Redis for gateways, engines and supervisors."""

import logging

import redis

from streaming.errors import InvalidSpace
from streaming.keys import SPACES_KEY
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

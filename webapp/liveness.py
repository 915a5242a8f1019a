"""Which hubs of web processes live, and which views they keep; the views of the dead are cancelled.

=============================  ======  ======================================================
key                            kind    what
=============================  ======  ======================================================
``lookout:webs``               set     hubs of web processes, dead ones until they are retired
``lookout:web:{id}``           text    there while the hub lives
``lookout:web:{id}:views``     set     numbers of its views
=============================  ======  ======================================================
"""

import uuid

import redis

from streaming.logs import LogNames, control_entry
from streaming.spaces import EARTH
from webapp.models.queries import clock_revision

WEBS_KEY = "lookout:webs"


def web_id(space: str) -> str:
    """Return the name of a new hub of a space."""
    return f"{space}:{uuid.uuid4().hex}"


def space_of(web: str) -> str:
    """Return the name of the space of a hub; earth where an earlier release named it."""
    return web.rpartition(":")[0] or EARTH.name


def alive_key(web: str) -> str:
    """Return the key that is there while a web process lives."""
    return f"lookout:web:{web}"


def views_key(web: str) -> str:
    """Return the key of the set of a web process's views."""
    return f"lookout:web:{web}:views"


def retire_views(client: redis.Redis) -> int:
    """Cancel the views of hubs whose process died, and return their number."""
    dead = [web for web in map(bytes.decode, client.smembers(WEBS_KEY)) if not client.exists(alive_key(web))]
    retired = 0
    for web in dead:
        views, control = client.smembers(views_key(web)), LogNames(space_of(web)).control
        with client.pipeline() as pipeline:
            for view in views:
                pipeline.xadd(control, control_entry("cancel", query=int(view), revision=clock_revision()))
            pipeline.delete(views_key(web)).srem(WEBS_KEY, web)
            pipeline.execute()
        retired += len(views)
    return retired

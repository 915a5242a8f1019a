"""Signs of life and views of the hubs of web processes; the views of dead hubs are cancelled.

=============================  ======  ======================================================
key                            kind    what
=============================  ======  ======================================================
``lookout:webs``               set     hubs of web processes; dead ones until they are retired
``lookout:web:{id}``           text    exists while the hub lives
``lookout:web:{id}:views``     set     numbers of the hub's views
=============================  ======  ======================================================
"""

import uuid

import redis

from streaming.logs import LogNames, control_entry
from streaming.spaces import EARTH
from webapp.models.queries import clock_revision

WEBS_KEY = "lookout:webs"


def web_id(space: str) -> str:
    """Return a unique id for a new hub of a space."""
    return f"{space}:{uuid.uuid4().hex}"


def space_of(web: str) -> str:
    """Return the name of a hub's space; earth for the ids of an earlier release, which name no space."""
    return web.rpartition(":")[0] or EARTH.name


def alive_key(web: str) -> str:
    """Return the key that exists while a hub lives."""
    return f"lookout:web:{web}"


def views_key(web: str) -> str:
    """Return the key of the set of a hub's views."""
    return f"lookout:web:{web}:views"


def retire_views(client: redis.Redis) -> int:
    """Cancel the views of hubs whose process died; return the number of views."""
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

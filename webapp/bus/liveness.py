"""Signs of life and views of the hubs of web processes; the views of dead hubs are cancelled."""

import uuid

import redis

from streaming.keys import WEBS_KEY, LogNames, alive_key, views_key
from streaming.logs import control_entry
from streaming.redis_client import read_set
from streaming.spaces import EARTH
from webapp.bus.redis import event_log
from webapp.models.queries import clock_revision


def web_id(space: str) -> str:
    """Return a unique id for a new hub of a space."""
    return f"{space}:{uuid.uuid4().hex}"


def space_of(web: str) -> str:
    """Return the name of a hub's space; earth for the ids of an earlier release, which name no space."""
    return web.rpartition(":")[0] or EARTH.name


def retire_views(client: redis.Redis) -> int:
    """Cancel the views of hubs whose process died; return the number of views."""
    dead = [web for web in map(bytes.decode, read_set(client, WEBS_KEY)) if not client.exists(alive_key(web))]
    retired = 0
    for web in dead:
        views, control = read_set(client, views_key(web)), LogNames(space_of(web)).control
        ends = (control_entry("cancel", query=int(view), revision=clock_revision()) for view in views)
        event_log(client).append_all((control, end) for end in ends)
        with client.pipeline() as pipeline:
            pipeline.delete(views_key(web))
            pipeline.srem(WEBS_KEY, web)
            pipeline.execute()
        retired += len(views)
    return retired

"""Which web processes live, and which views they keep; the views of the dead are cancelled.

=============================  ======  ======================================================
key                            kind    what
=============================  ======  ======================================================
``lookout:views``              number  views numbered so far
``lookout:webs``               set     web processes, dead ones until they are retired
``lookout:web:{id}``           text    there while the process lives
``lookout:web:{id}:views``     set     numbers of its views
=============================  ======  ======================================================
"""

import redis

from streaming.logs import LogNames, control_entry
from webapp.models.queries import clock_revision

VIEWS_KEY = "lookout:views"
WEBS_KEY = "lookout:webs"


def alive_key(web: str) -> str:
    """Return the key that is there while a web process lives."""
    return f"lookout:web:{web}"


def views_key(web: str) -> str:
    """Return the key of the set of a web process's views."""
    return f"lookout:web:{web}:views"


def retire_views(client: redis.Redis, names: LogNames) -> int:
    """Cancel the views of web processes that died, and return their number."""
    dead = [web for web in map(bytes.decode, client.smembers(WEBS_KEY)) if not client.exists(alive_key(web))]
    retired = 0
    for web in dead:
        views = client.smembers(views_key(web))
        with client.pipeline() as pipeline:
            for view in views:
                pipeline.xadd(names.control, control_entry("cancel", query=int(view), revision=clock_revision()))
            pipeline.delete(views_key(web)).srem(WEBS_KEY, web)
            pipeline.execute()
        retired += len(views)
    return retired

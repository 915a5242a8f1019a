"""The hubs of a web process, one for each space."""

import asyncio
from weakref import WeakKeyDictionary

from streaming.spaces import Space
from webapp.hub.hub import Hub

_HUBS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Space, Hub]] = WeakKeyDictionary()


def current_hub(space: Space) -> Hub:
    """Return the hub of a space in the running event loop."""
    hubs = _HUBS.setdefault(asyncio.get_running_loop(), {})
    return hubs.get(space) or hubs.setdefault(space, Hub(space))

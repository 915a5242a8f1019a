"""The types of ASGI: a connection's scope, what comes from its client, and what goes to it."""

from collections.abc import Awaitable, Callable
from typing import Any

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
# It takes these three; Django and Channels each have types of their own for them.
Application = Callable[..., Awaitable[None]]

"""The messages that ask for explanations."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

from django.utils.translation import gettext

from webapp.consumers.connection import ClientConnection
from webapp.consumers.messages import Reference
from webapp.consumers.outbox import Unread
from webapp.questions.why import telling
from webapp.words.refusals import Refused

logger = logging.getLogger(__name__)

# So many explanations may be under way at once: each asks the engine.
MOST_ASKED = 4


class Why(ClientConnection):
    """The part of a connection that explains; the connection continues meanwhile."""

    explaining: set[asyncio.Task]

    async def on_why_object(self, reference: Reference, query: int, stream: str, key: str) -> None:
        """Reply why an object is in the answer of a query now, or is not."""
        self._explain(reference, telling.of_object(self.user, self.hubs.of, query, stream, key))

    async def on_why_event(
        self, reference: Reference, query: int, key: str, sign: str, time_us: int, partner: str
    ) -> None:
        """Reply why an object entered or left the answer of a query."""
        self._explain(reference, telling.of_event(self.user, query, key, sign, time_us, partner))

    async def on_why_incident(self, reference: Reference, incident: int) -> None:
        """Reply why an incident was opened, and how its alarms were delivered."""
        self._explain(reference, telling.of_incident(self.user, incident))

    def _explain(self, reference: Reference, told: Coroutine[Any, Any, dict[str, Any]]) -> None:
        if len(self.explaining) >= MOST_ASKED:
            told.close()
            raise Refused(
                "rate",
                gettext("a connection may ask for %(most_asked)s explanations at once; got one more")
                % {"most_asked": MOST_ASKED},
            )
        task = asyncio.create_task(self._reply(reference, told))
        self.explaining.add(task)
        task.add_done_callback(self.explaining.discard)

    async def _reply(self, reference: Reference, told: Coroutine[Any, Any, dict[str, Any]]) -> None:
        try:
            said = {"type": "why.told"} | await told
        except Refused as refused:
            said = {"type": "error", **refused.document()}
        except Exception:
            logger.exception("an explanation failed")
            said = {"type": "error", "code": "why", "message": gettext("this could not be explained; see the log")}
        with contextlib.suppress(Unread):
            self.say({"id": reference, **said})

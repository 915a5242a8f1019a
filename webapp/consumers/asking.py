"""The questions to sketches that one connection has asked: queries that are not saved, and end with the connection."""

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext

from streaming.kinds.sketch.writing import text_of
from webapp.consumers.hubs import Hubs
from webapp.consumers.messages import Reference
from webapp.hub import Hub
from webapp.words.refusals import Refused

# So many questions may be open at once; the page asks a dozen for one area.
MOST_ASKED = 64


class OpenQuestions:
    """Keeps the open questions of a connection.

    Parameters
    ----------
    hubs : Hubs
    say : function of a message
        Sends a message to the client.
    """

    def __init__(self, hubs: Hubs, say: Callable[[dict[str, Any]], None]) -> None:
        self.hubs, self.say = hubs, say
        self._open: dict[int, Hub] = {}

    async def ask(
        self, reference: Reference, space: str, plan: dict[str, Any], form: str, note: str | None = None
    ) -> None:
        """Ask the question of a plan. The client gets its number, plan, text and note, then a snapshot, then changes.

        Raises
        ------
        Refused
            ``limit`` if too many questions are open.
        """
        if len(self._open) >= MOST_ASKED:
            raise Refused(
                "limit",
                gettext("a connection may have %(most_asked)s open questions; got one more")
                % {"most_asked": MOST_ASKED},
            )
        hub = await self.hubs.of(space)
        number = hub.views.number()
        self._open[number] = hub
        about = {"query": number, "plan": plan, "text": text_of(plan), "note": note}
        self.say({"type": "sketch.asked", "id": reference} | about)
        hub.views.register(number, plan)
        await self.hubs.subscribe([number], form, hub)

    def end(self, number: int) -> None:
        """End a question; nothing happens if it is not open."""
        if (hub := self._open.pop(number, None)) is not None:
            self.hubs.unsubscribe(number)
            hub.views.cancel(number)

    def close(self) -> None:
        """End all questions."""
        for number in list(self._open):
            self.end(number)

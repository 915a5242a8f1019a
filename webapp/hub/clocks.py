"""The clocks of rules and objects: asked of the engine, and told by it in a batch."""

import asyncio
from collections import defaultdict

from streaming.results.rule_clock import RuleClock
from webapp.hub.assembly import Batch
from webapp.hub.engine_link import EngineLink


class Clocks:
    """Asks the engine for clocks, and gives each one to all who wait for it."""

    def __init__(self, link: EngineLink) -> None:
        self.link = link
        self._waiting: dict[tuple[int, str], set[asyncio.Future]] = defaultdict(set)

    async def ask(self, rule: int, key: str, timeout_s: float) -> RuleClock | None:
        """Return the clock of a rule and an object; None if the engine does not tell it in time."""
        told = asyncio.get_running_loop().create_future()
        waiting = self._waiting[rule, key]
        waiting.add(told)
        self.link.send(("clock", rule, key), self.link.entry("clock", query=rule, key=key))
        try:
            return await asyncio.wait_for(told, timeout_s)
        except TimeoutError:
            return None
        finally:
            waiting.discard(told)
            if not waiting:
                self._waiting.pop((rule, key), None)

    def observe(self, batch: Batch) -> None:
        """Give the clocks of a batch to those who wait."""
        if not self._waiting:
            return
        for document in (clock for fragment in batch.fragments for clock in fragment.clocks):
            clock = RuleClock.of(document)
            for told in self._waiting.get((clock.query, clock.key), ()):
                if not told.done():
                    told.set_result(clock)

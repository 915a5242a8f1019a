"""A hostile user who sends plans and messages by chance."""

import asyncio
import random
import time

from bench.attacks.chance_messages import Messages
from bench.attacks.chance_plans import Plans
from bench.attacks.doors import Attacker

SEED, COUNT = 7, 1_000
# The plans are to stay: no message ends them.
LEFT_OUT = frozenset({"query.cancel"})


class Hostile:
    """Sends a thousand plans and messages, evenly over the time of the attack, and comes again when disconnected."""

    def __init__(self, attacker: Attacker) -> None:
        self._attacker, self._rng = attacker, random.Random(SEED)
        self._known = list(attacker.queries)
        self._plans = Plans(self._rng, self._known)
        self._messages = Messages(self._rng, self._plans, self._known)
        self._types = sorted(set(attacker.fields) - LEFT_OUT)
        self._sent, self._began_s = 0, time.monotonic()

    async def attack(self) -> None:
        """Send everything."""
        while self._sent < COUNT:
            await self._attacker.bounded(self._connected())
            await asyncio.sleep(1.0)

    async def _connected(self):
        heard = 0
        async with self._attacker.socket() as socket:
            while self._sent < COUNT:
                self._sent += 1
                due_s = self._began_s + self._attacker.seconds * self._sent / COUNT
                await asyncio.sleep(due_s - time.monotonic())
                while heard < len(socket.registered):
                    number, heard = socket.registered[heard], heard + 1
                    self._known.append(number)
                    await socket.tell("query.subscribe", query=number, format="arrow", joined=True)
                if self._rng.random() < 0.5:
                    await socket.tell("query.register", **self._attacker.registration(self._plans.draw()))
                else:
                    kind = self._rng.choice(self._types)
                    message = self._messages.draw(kind, self._attacker.fields[kind])
                    await socket.tell(message.pop("type"), **message)


async def by_chance(attacker: Attacker) -> None:
    """Send plans and messages by chance."""
    await Hostile(attacker).attack()

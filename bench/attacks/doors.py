"""The doors through which attackers come: websockets and HTTP, with the ordinary rights of a user."""

import asyncio
import contextlib
import itertools
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from bench.attacks.followed import Followed
from streaming.results import read_frame

# Below the 50 messages a second that the server carries out.
MESSAGES_S = 40.0
REPLY_S, LEAVE_S = 30.0, 30.0


class Socket:
    """A websocket of an account, which reads all that comes and counts what is refused.

    Parameters
    ----------
    socket : ClientConnection
    tally : Counter

    Attributes
    ----------
    registered : list of int
        The numbers of queries that were registered through it.
    followed : Followed or None
        A query whose answer is kept; None if all answers are thrown away.
    """

    def __init__(self, socket: ClientConnection, tally: Counter[str]) -> None:
        self._socket, self._tally = socket, tally
        self._numbers, self._due_s = itertools.count(1), 0.0
        self._replies: dict[int, asyncio.Future] = {}
        self._registering: set[int] = set()
        self.followed: Followed | None = None
        self.registered: list[int] = []

    async def tell(self, kind: str, **fields: Any) -> int:
        """Send a message, no faster than the server carries them out; return its id."""
        now_s, number = time.monotonic(), next(self._numbers)
        self._due_s = max(self._due_s + 1 / MESSAGES_S, now_s)
        await asyncio.sleep(self._due_s - now_s)
        if kind == "query.register":
            self._registering.add(number)
        await self._socket.send(json.dumps({"type": kind, "id": number, **fields}))
        self._tally["sent"] += 1
        return number

    async def ask(self, kind: str, timeout_s: float = REPLY_S, **fields: Any) -> dict[str, Any]:
        """Send a message and return its last reply; an error if none comes in time."""
        number = await self.tell(kind, **fields)
        self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._replies[number]
        except TimeoutError:
            self._tally["no reply"] += 1
            return {"type": "error", "code": "no reply"}
        finally:
            del self._replies[number]

    async def read(self) -> None:
        """Read until the connection ends, which is counted and ends all waiting for replies."""
        with contextlib.suppress(ConnectionClosed):
            async for frame in self._socket:
                self._frame(frame)
        self._tally[f"closed {self._socket.close_code}"] += 1
        for reply in self._replies.values():
            if not reply.done():
                reply.set_exception(ConnectionResetError("the connection was closed before the reply"))

    async def closed(self) -> None:
        """Wait until the server closes the connection."""
        await self._socket.wait_closed()

    def _frame(self, frame):
        if isinstance(frame, bytes):
            self._take(*read_frame(frame))
            return
        message = json.loads(frame)
        if message["type"] == "error":
            self._tally[f"refused {message['code']}"] += 1
        if message["type"] == "query.status" and message.get("id") in self._registering:
            self.registered.append(message["query"])
            self._tally["registered"] += 1
        reply = self._replies.get(message.get("id"))
        if reply and not reply.done() and message["type"] != "backtest.progress":
            reply.set_result(message)

    def _take(self, head, rows):
        if head.get("resync"):
            self._tally["told as not sent"] += 1
        if self.followed is not None:
            self.followed.take(head, rows)


@dataclass
class Attacker:
    """Somebody with accounts, who knows the doors.

    Parameters
    ----------
    socket_url, base_url : str
    accounts : sequence of mapping
        The `token` and the `login` of each.
    fields : mapping of str to sequence of str
        The names of the fields of each type of message.
    queries : sequence of int
        Of the other user, who does not share them.
    seconds : float
        How long the attack goes on.
    """

    socket_url: str
    base_url: str
    accounts: Sequence[Mapping[str, str]]
    fields: Mapping[str, Sequence[str]]
    queries: Sequence[int]
    seconds: float
    tally: Counter[str] = field(default_factory=Counter)
    mine: dict[int, list[int]] = field(default_factory=dict)

    def token(self, account: int = 0) -> dict[str, str]:
        """Return the header by which a program of an account logs in at the websocket."""
        return {"Authorization": f"Token {self.accounts[account]['token']}"}

    @contextlib.asynccontextmanager
    async def socket(self, account: int = 0) -> AsyncIterator[Socket]:
        """Open a websocket that is read."""
        async with connect(
            self.socket_url, additional_headers=self.token(account), max_size=None, compression=None
        ) as opened:
            socket = Socket(opened, self.tally)
            reading = asyncio.create_task(socket.read())
            try:
                yield socket
            finally:
                self.mine.setdefault(account, []).extend(socket.registered)
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def program(self, account: int = 0) -> AsyncIterator[aiohttp.ClientSession]:
        """Open HTTP as a program with a token."""
        headers = {"Authorization": f"Bearer {self.accounts[account]['token']}"}
        async with aiohttp.ClientSession(self.base_url, headers=headers) as session:
            yield session

    async def register(self, socket: Socket, plan: Mapping[str, Any]) -> int | None:
        """Register a query; return its number, None if it was refused."""
        reply = await socket.ask("query.register", **self.registration(plan))
        return reply["query"] if reply["type"] == "query.status" else None

    def registration(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a message that registers a query, confirmed where the server knows that."""
        sure = {"confirmed": True} if "confirmed" in self.fields["query.register"] else {}
        return {"name": "attack", "plan": plan, **sure}

    async def bounded(self, attack: Awaitable[None]) -> None:
        """Run a part of an attack until it ends or cannot go on, which is counted."""
        try:
            await attack
        except (ConnectionClosed, ConnectionResetError):
            pass  # counted where it is read
        except (OSError, TimeoutError, InvalidHandshake, aiohttp.ClientError) as error:
            self.tally[type(error).__name__] += 1

    async def leave(self) -> None:
        """Cancel all own queries, as whoever ends an attack does."""
        for account, numbers in self.mine.items():
            with contextlib.suppress(OSError, TimeoutError, ConnectionClosed):
                async with asyncio.timeout(LEAVE_S), self.socket(account) as socket:
                    for number in list(numbers):
                        await socket.tell("query.cancel", query=number)
                    # The server carries out the messages of a connection in their order.
                    await socket.ask("query.list", limit=1)

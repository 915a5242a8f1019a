"""A client of ``/ws/monitor/`` that keeps answers as the map does, and checks the grammar of what it is sent."""

import asyncio
import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from bench.live import PATIENCE_S
from streaming.results import json_rows, read_frame

RETRY_S = 0.2


class Refusal(Exception):
    """The server answered a request with an error.

    Parameters
    ----------
    error : dict
        The message.
    """

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code, self.message = error["code"], error["message"]


class Monitor:
    """One websocket connection; it connects and subscribes again when the connection ends.

    Parameters
    ----------
    url, token : str
    form : {"json", "arrow"}
        Of answers.

    Attributes
    ----------
    answers : dict
        By query, the rows of its answer by key, those of a join by (key, partner's key); without the query where it is
        not known.
    subscribed : set of int
        The queries that it subscribes to; views are not among them.
    places : dict
        By query that moves, the last row that told where it is.
    statuses, streams : dict
        The last `query.status` by query, and the last `stream.status`.
    engines : dict
        The last `engine.status` of each space.
    told : dict of int to list of dict
        Rows that are no members of an answer, by query: those of joins over event time.
    encounters : dict of int to list of dict
        All changes of encounters, by query.
    kept : dict of int to list of dict
        All changes of the queries that it has, by query.
    faults : list of str
        Where the server broke the grammar of answers.
    errors : list of dict
        Errors that belong to no request.
    connections : int
        How often it has connected.
    """

    def __init__(self, url: str, token: str, form: str = "json") -> None:
        self.url, self.token, self.form = url, token, form
        self.answers: dict[int, dict[str | tuple[str, str], dict]] = {}
        self.places: dict[int, dict] = {}
        self.told: dict[int, list[dict]] = defaultdict(list)
        self.encounters: dict[int, list[dict]] = defaultdict(list)
        self.kept: dict[int, list[dict]] = {}
        self.statuses: dict[int, dict] = {}
        self.streams: dict[str, dict] = {}
        self.engines: dict[str, dict] = {}
        self.faults: list[str] = []
        self.errors: list[dict] = []
        self.snapshots = self.changes = self.resyncs = self.connections = 0
        self.subscribed: set[int] = set()
        self._fresh: set[int] = set()  # subscribed anew: the first snapshot may differ from what is held
        self._views: set[int] = set()
        self._batches: dict[int, int] = {}
        self._snapshot_counts: dict[int, int] = {}
        self._replies: dict[Any, asyncio.Future] = {}
        self._numbers = itertools.count(1)
        self._news = asyncio.Event()
        self._socket = None

    async def __aenter__(self) -> "Monitor":
        self._greeted = asyncio.Event()
        self._task = asyncio.create_task(self._run())
        await asyncio.wait_for(self._greeted.wait(), PATIENCE_S)
        return self

    async def __aexit__(self, *_) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    # Requests.

    async def request(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Send a message that has a reply, and return that.

        Raises
        ------
        Refusal
            When it is an error.
        """
        number = next(self._numbers)
        self._replies[number] = asyncio.get_running_loop().create_future()
        try:
            await self.send({"type": kind, "id": number, **fields})
            reply = await asyncio.wait_for(self._replies[number], PATIENCE_S)
        finally:
            del self._replies[number]
        if reply["type"] == "error":
            raise Refusal(reply)
        return reply

    async def send(self, message: dict[str, Any] | str) -> None:
        """Send a message as soon as there is a connection."""
        while True:
            await asyncio.wait_for(self._greeted.wait(), PATIENCE_S)
            with contextlib.suppress(ConnectionClosed):
                await self._socket.send(message if isinstance(message, str) else json.dumps(message))
                return
            await asyncio.sleep(RETRY_S)

    async def register(self, name: str, plan: dict) -> int:
        """Register a query and subscribe to it; return its number."""
        number = (await self.request("query.register", name=name, plan=plan))["query"]
        await self.subscribe(number)
        return number

    async def subscribe(self, query: int) -> None:
        """Subscribe to a query's answer."""
        self.subscribed.add(query)
        self._fresh.add(query)
        await self.send({"type": "query.subscribe", "query": query, "format": self.form})

    async def view(self, streams: list[str], area: dict) -> dict[str, int]:
        """Open or move the viewport and return its numbers; it is not opened again after the connection ended."""
        return (await self.request("view.subscribe", streams=streams, area=area, format=self.form))["views"]

    async def snapshot(self, query: int) -> None:
        """Ask for one more snapshot and wait for it."""
        before = self.snapshots_of(query)
        await self.send({"type": "query.snapshot", "query": query})
        await self.until(lambda: self.snapshots_of(query) > before, f"a snapshot of query {query}")

    def snapshots_of(self, query: int) -> int:
        """Return the number of snapshots of a query."""
        return self._snapshot_counts.get(query, 0)

    # Conditions.

    async def until(
        self, condition: Callable[[], Any], what: str | Callable[[], str], timeout_s: float = PATIENCE_S
    ) -> Any:
        """Wait until a condition holds, looked at after each message, and return its value."""
        try:
            async with asyncio.timeout(timeout_s):
                while not (found := condition()):
                    self._news.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), 0.5)
                return found
        except TimeoutError:
            raise AssertionError(f"not in {timeout_s} s: {what if isinstance(what, str) else what()}") from None

    @property
    def engine(self) -> dict[str, Any]:
        """The last `engine.status` of the built-in space."""
        return self.engines.get("earth", {})

    def status(self, query: int) -> str:
        """Return how a query stands."""
        return self.statuses.get(query, {}).get("status", "")

    async def running(self, *queries: int) -> None:
        """Wait until queries run."""
        await self.until(
            lambda: all(self.status(query) == "running" for query in queries),
            lambda: f"running: {[self.statuses.get(query) for query in queries]}",
        )

    # The connection.

    async def _run(self):
        while True:
            with contextlib.suppress(OSError, ConnectionClosed, InvalidStatus):
                headers = {"Authorization": f"Token {self.token}"}
                async with connect(
                    self.url, additional_headers=headers, max_size=None, compression=None
                ) as self._socket:
                    self.connections += 1
                    await self._follow()
            self._greeted.clear()
            await asyncio.sleep(RETRY_S)

    async def _follow(self):
        # Batches may not be compared with those before: the snapshots that come are what counts.
        self._fresh = set(self.subscribed)
        self._batches.clear()
        self._views.clear()
        for query in self.subscribed:
            await self._socket.send(json.dumps({"type": "query.subscribe", "query": query, "format": self.form}))
        async for frame in self._socket:
            self._take(frame)
            self._news.set()

    def _take(self, frame):
        if isinstance(frame, str):
            message = json.loads(frame)
            rows = message.pop("rows", [])
        else:
            message, table = read_frame(frame)
            rows, _ = json_rows(table)
        if (reply := self._replies.get(message.get("id"))) and not reply.done():
            reply.set_result(message | ({"rows": rows} if rows else {}))
        self._TAKES.get(message["type"], Monitor._take_other)(self, message, rows)

    def _take_hello(self, message, _):
        self.hello = message
        self._greeted.set()

    def _take_status(self, message, _):
        self.statuses[message["query"]] = message

    def _take_views(self, message, _):
        views = set(message["views"].values())
        self._fresh |= views - self._views  # one that moves goes on by changes
        self._views = views

    def _take_engine(self, message, _):
        self.engines[message["space"]] = message

    def _take_streams(self, message, _):
        self.streams = message["streams"]

    def _take_other(self, message, _):
        if message["type"] == "error" and "id" not in message:
            self.errors.append(message)

    def _take_snapshot(self, message, rows):
        query, rows = message["query"], self._members(message["query"], rows)
        answer = {_member(row): _kept(row) for row in rows}
        self.snapshots += 1
        self._snapshot_counts[query] = self.snapshots_of(query) + 1
        self.resyncs += message["resync"]
        if len(answer) != len(rows):
            self.faults.append(f"query {query}: a snapshot repeats a key")
        if query not in self._fresh and not message["resync"] and answer != self.answers[query]:
            self.faults.append(f"query {query}: the snapshot of batch {message['batch']} is not what changes led to")
        if message["batch"] < self._batches.get(query, -1):
            self.faults.append(f"query {query}: batch {message['batch']} after {self._batches[query]}")
        self._fresh.discard(query)
        self.answers[query], self._batches[query] = answer, message["batch"]

    def _members(self, query, rows):
        """Return the rows of members, and keep those that tell where the query is, or of a pair of reports."""
        for row in rows:
            if row["sign"] == "@":
                self.places[query] = row
            elif _is_told_once(row):
                self.told[query].append(row)
        return [row for row in rows if row["sign"] != "@" and not _is_told_once(row)]

    def _take_change(self, message, rows):
        query, batch = message["query"], message["batch"]
        self.changes += 1
        if query in self._fresh:
            return  # of the subscription before
        if batch <= self._batches[query]:
            self.faults.append(f"query {query}: batch {batch} after {self._batches[query]}")
        self._batches[query] = batch
        answer = self.answers[query]
        if query in self.kept:
            self.kept[query] += rows
        for row in self._members(query, rows):
            if "since_us" in row:
                self.encounters[query].append(row)
            if (row["sign"] == "+") == (_member(row) in answer):
                self.faults.append(f"query {query}: {row['sign']} of {row['key']} in batch {batch}")
            if row["sign"] == "-":
                answer.pop(_member(row), None)
            else:
                answer[_member(row)] = _kept(row)

    _TAKES = {
        "hello": _take_hello,
        "query.status": _take_status,
        "view.status": _take_views,
        "engine.status": _take_engine,
        "stream.status": _take_streams,
        "answer.snapshot": _take_snapshot,
        "answer.change": _take_change,
    }


def _is_told_once(row):
    return "time_us" in row.get("partner", ()) and "since_us" not in row


def _member(row):
    return (row["key"], row["partner"]["key"]) if "partner" in row else row["key"]


def _kept(row):
    """Return what an answer says of an object, however it came to be there."""
    return {name: row[name] for name in ("time_us", "bounds", "properties", "distance", "rank") if name in row}

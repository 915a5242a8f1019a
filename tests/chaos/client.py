"""A websocket client that comes back as the page does: it says what it holds, and gets what it missed."""

import contextlib
import json
import time
from collections import defaultdict

from tests.live.monitor import Monitor


class ReturningClient(Monitor):
    """A `Monitor` that resumes its answers on a new connection, and checks what it is sent across connections.

    Requests whose reply can no longer come fail with `ConnectionError`: whether they were carried out is not known.

    Parameters
    ----------
    url, token, form :
        As for `Monitor`.
    joined : bool
        Whether it asks for joined changes; only in JSON.

    Attributes
    ----------
    newest_us : dict of str to int
        The event time of the newest element that it got, by the first letter of the key.
    resumed : int
        How many answers went on after a connection had ended.
    longest_gap_s : float
        The longest time without a change since `watch`.
    """

    def __init__(self, url: str, token: str, form: str = "json", joined: bool = False) -> None:
        super().__init__(url, token, form)
        self._joined = joined
        self._epochs: dict[int, str] = {}
        self.newest_us: dict[str, int] = defaultdict(int)
        self.resumed, self.longest_gap_s = 0, 0.0
        self._changed_s: float | None = None

    def watch(self, watching: bool) -> None:
        """Begin or end to look for gaps in the changes."""
        self._note_gap()
        self._changed_s = time.monotonic() if watching else None

    async def follow(self, queries: list[int]) -> None:
        """Subscribe to queries, at once."""
        self.subscribed |= set(queries)
        self._fresh |= set(queries)
        with contextlib.suppress(OSError):
            await self.send({"type": "query.subscribe", "queries": queries, **self._form()})

    async def leave(self, query: int) -> None:
        """Unsubscribe from a query, and forget its answer."""
        self.subscribed.discard(query)
        await self.send({"type": "query.unsubscribe", "query": query})
        for held in (self.answers, self._batches, self._epochs, self.places):
            held.pop(query, None)

    def cut(self) -> None:
        """Cut the connection, without a word to the server."""
        if self._socket is not None:
            self._socket.transport.abort()

    async def _follow(self):
        alike = defaultdict(list)
        for query in self.subscribed:
            known = query in self._epochs and query not in self._fresh
            alike[(self._epochs[query], self._batches[query]) if known else None].append(query)
        self._fresh = set(self.subscribed)
        try:
            for held, queries in alike.items():
                said = {"held": {"epoch": held[0], "batch": held[1]}} if held else {}
                message = {"type": "query.subscribe", "queries": queries, **self._form(), **said}
                await self._socket.send(json.dumps(message))
            async for frame in self._socket:
                self._take(frame)
                self._news.set()
        finally:
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(ConnectionResetError("the connection ended before the reply"))

    def _form(self):
        return {"format": self.form} | ({"joined": True} if self._joined else {})

    def _take_resumed(self, message, _):
        query = message["query"]
        if (message["epoch"], message["batch"]) != (self._epochs.get(query), self._batches.get(query)):
            held = self._epochs.get(query), self._batches.get(query)
            self.faults.append(f"query {query}: resumed at {message['epoch']}, {message['batch']} instead of {held}")
        self._fresh.discard(query)
        self.resumed += 1

    def _take_held(self, message, _):
        behind = set(message["without"]) | self._fresh
        for query, batch in self._batches.items():
            if query not in behind and self._epochs[query] == message["epoch"]:
                self._batches[query] = max(batch, message["batch"])

    def _take_snapshot(self, message, rows):
        query = message["query"]
        if query not in self.subscribed:
            return
        if query in self._fresh or self._epochs.get(query) != message["epoch"]:
            self._fresh.add(query)
            self._batches.pop(query, None)
        self._epochs[query] = message["epoch"]
        if self._only_membership(query) and query not in self._fresh and not message["resync"]:
            # What stays in such an answer is not reported, so only the keys are what changes led to.
            self._fresh |= {query} if self._keys(query, rows) == self.answers[query].keys() else set()
        super()._take_snapshot(message, rows)

    def _only_membership(self, query):
        return self.statuses.get(query, {}).get("plan", {}).get("emit") == "membership"

    def _keys(self, query, rows):
        return {row["key"] for row in self._members(query, rows)}

    def _take_change(self, message, rows):
        if message["query"] not in self.subscribed:
            return
        super()._take_change(message, rows)
        self._note_gap()
        for row in rows:
            letter = row["key"][:1]
            self.newest_us[letter] = max(self.newest_us[letter], row["time_us"] or 0)

    def _take_changes(self, message, _):
        for change in message["changes"]:
            self._take_change(message | change, change["rows"])

    def _note_gap(self):
        now_s = time.monotonic()
        if self._changed_s is not None:
            self.longest_gap_s = max(self.longest_gap_s, now_s - self._changed_s)
            self._changed_s = now_s

    _TAKES = Monitor._TAKES | {
        "answer.snapshot": _take_snapshot,
        "answer.change": _take_change,
        "answer.changes": _take_changes,
        "answer.resumed": _take_resumed,
        "answer.held": _take_held,
    }

"""The consumer of ``/ws/monitor/``: turns messages into calls of `webapp.queries.queries` and the hub."""

import asyncio
import contextlib
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any, cast

import orjson
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import translation
from django.utils.translation import gettext

from streaming.spaces import EARTH, space_document
from webapp.audit.origin import acting
from webapp.bus.notify import DEFINITIONS_GROUP, LAYERS_GROUP, SHARED_GROUP, user_group
from webapp.consumers.asgi import Receive, Scope, Send
from webapp.consumers.asking import OpenQuestions
from webapp.consumers.backtests import Backtests
from webapp.consumers.counted import Counted
from webapp.consumers.hubs import Hubs
from webapp.consumers.incidents import Incidents
from webapp.consumers.listing import Listing, listing_of, status_frame
from webapp.consumers.messages import Reference, read_document, read_fields, reference_of
from webapp.consumers.outbox import Outbox, Unread
from webapp.consumers.permissions import check_allowed
from webapp.consumers.sharing import Sharing
from webapp.consumers.viewports import Viewport, view_plans, watch_plans
from webapp.consumers.why import Why
from webapp.history import questions
from webapp.hub import AnswerSubscription, ResumePoint
from webapp.models import AuditEntry, Query, RemovedExamples, Space, Stream
from webapp.queries import queries
from webapp.queries.filter_check import check_filter_text
from webapp.queries.listing import END, START, Position, page_of
from webapp.queries.queries import visible, visible_among
from webapp.rights import fair
from webapp.rights.access import Guest, Rights, rights_of
from webapp.rights.limits import FLOODED, TokenBucket
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold_health, retold_in

logger = logging.getLogger(__name__)

UNAUTHENTICATED, TOO_BIG, BROKEN = 4401, 1009, 1011
# The connection ends after this many messages beyond the rate at once, or more than one per second on average.
REFUSALS_BURST = 100
# Questions to tables run in these threads, so that they block nothing else; a process answers two at a time.


class Monitor(Backtests, Counted, Incidents, Why, Sharing):
    """One websocket connection.

    Attributes
    ----------
    user : User or Guest
    rights : Rights
        Of the user, as they were at the last ``rights.changed``; subscriptions read them anew.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the connection; release everything that it holds, however it ends."""
        self.joined, self.channel_name = False, ""
        self.questions: set[asyncio.Task[None]] = set()
        self.explaining, self.ended = set(), threading.Event()
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self.channel_name:
                self.channel_layer.drop_channel(self.channel_name)
            try:
                if self.joined:
                    await self._leave()
            finally:
                await self.uncount()

    async def connect(self) -> None:
        """Accept a known user, and send ``hello`` and the statuses of the queries to list; refuse others."""
        user = await self.admitted()
        if user is None or not await self.count(user):
            return
        self.user = user
        self.language = translation.get_language() or settings.LANGUAGE_CODE
        now = time.monotonic()
        self.bucket = TokenBucket(settings.MESSAGES_PER_SECOND, settings.MESSAGES_BURST, now)
        self.refusals = TokenBucket(1, REFUSALS_BURST, now)
        self.warned = False
        self.viewed: dict[str, Stream] = {}  # those that views asked for, until spaces or streams change
        self.outbox = Outbox(self._transmit, self._look_up, self._recover, self._go_on, settings.MAX_QUEUED_BYTES)
        self.hubs = Hubs(self)
        self.viewport = Viewport(self.hubs, self.say)
        self.asked = OpenQuestions(self.hubs, self.say)
        self.incidents_of = set()
        self.joined = True
        await self.accept()
        self.sender = asyncio.create_task(self.outbox.run())
        self.sender.add_done_callback(self._sender_ended)
        for group in self.groups_of_user():
            await self.channel_layer.group_add(group, self.channel_name)
        # After the groups: a change of the rights is either read here, or heard of.
        self.rights = await database_sync_to_async(rights_of)(self.user)
        await self._join_teams(Rights())
        await self._greet()
        await self.hubs.follow()

    async def admitted(self) -> User | Guest | None:
        """Return the user of the connection; refuse it and return None if nobody is logged in."""
        user = self.scope["user"]
        if user.is_authenticated:
            return user
        await self.accept()
        await self.close(*self.scope.get("refusal", (UNAUTHENTICATED, gettext("log in, or send a token"))))
        return None

    def groups_of_user(self) -> list[str]:
        """Return the groups of a user, without those that depend on the user's rights."""
        assert self.user.pk is not None  # a guest has other groups
        return [user_group(self.user.pk), SHARED_GROUP, DEFINITIONS_GROUP, LAYERS_GROUP]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Carry out a message, or reply with an error."""
        if not self.joined:
            return
        content = bytes_data or b"" if text_data is None else text_data.encode()
        if len(content) > settings.MAX_MESSAGE_BYTES:
            await self.close(
                TOO_BIG,
                gettext("a message may have %(max_message_bytes)s bytes")
                % {"max_message_bytes": settings.MAX_MESSAGE_BYTES},
            )
            return
        reference = None
        try:
            if not await self._within_rate():
                return
            if text_data is None:
                raise Refused(
                    "json",
                    gettext("a message must be a JSON text frame; got %(count)s bytes") % {"count": len(content)},
                )
            document = read_document(text_data)
            reference = reference_of(document)
            kind, fields = read_fields(document)
            check_allowed(kind, self.user)
            address = (self.scope.get("client") or ("",))[0]
            with acting(self.user, AuditEntry.WEBSOCKET, address):
                await getattr(self, f"on_{kind.replace('.', '_')}")(reference, **fields)
        except Refused as refused:
            self.say({"type": "error", "id": reference, **refused.document()})
        except Unread as error:
            await self.close(FLOODED, str(error))

    # Called by the hub (`hub.subscriptions.Subscriber`).

    def deliver(self, subscription: AnswerSubscription, frame: str | bytes) -> None:
        """Queue an answer."""
        self.outbox.answer(subscription, frame)

    def deliver_joined(self, subscriptions: Sequence[AnswerSubscription], frame: str | bytes) -> None:
        """Queue the changes of several answers."""
        self.outbox.changes(subscriptions, frame)

    def report(self, slot: str, text: str) -> None:
        """Queue a regular report, which may wait for another message."""
        self.outbox.report(slot, retold_health(text, self.language) if slot == "stream.status" else text)

    def mark(self, space: str, text: str) -> None:
        """Queue a text that says up to which batch the client has all changes."""
        self.outbox.mark(space, text)

    def when_sent(self, tell: Callable[[], None]) -> None:
        """Call a function once the answer that was queued last is sent."""
        self.outbox.when_sent(tell)

    def waiting(self) -> tuple[int, float]:
        """Return how many bytes of answers wait, and for how many seconds the oldest frame does."""
        return self.outbox.waiting_bytes, self.outbox.waits_s()

    # Called by the channel layer.

    async def query_status(self, event: dict[str, Any]) -> None:
        """Send the statuses of queries. A query that the user may not see any more ends."""
        for standing in event["queries"]:
            document, mine = standing["document"], standing["owner_id"] == self.user.pk
            if document["example"] and not self.examples:
                continue
            known = document["query"] in self.hubs.subscriptions or document["query"] in self.incidents_of
            seen = self._sees(standing)
            listed = known or (seen and self.listing.covers(document, mine)) or document["query"] in self.listing.told
            if not seen:
                self.hubs.unsubscribe(document["query"])
            self.hubs.edited(document["query"], document["plan"])
            if listed:
                self.listing.note(document if seen else document | {"status": Query.CANCELLED})
                self.outbox.status(document["query"], status_frame(self.shown(document), mine, seen))
        if event.get("lists") and not self.listing.whole:
            self.broadcast("queries.changed", orjson.dumps({"type": "queries.changed"}).decode())

    async def examples_changed(self, event: dict[str, Any]) -> None:
        """Send the examples' statuses if the user shows them again; end them if the user removed them."""
        self.examples = event["shown"]
        numbers = await database_sync_to_async(_examples)()
        for number in () if self.examples else numbers:
            self.hubs.unsubscribe(number)
        self.listing.learn(numbers)
        self.outbox.statuses(numbers)

    async def definitions_changed(self, _: object) -> None:
        """Attach to the hubs of the present spaces, and send the lists of spaces and streams."""
        self.viewed = {}
        await self.hubs.follow()
        message = {"type": "stream.list", **await database_sync_to_async(self.definitions)()}
        self.broadcast("stream.list", orjson.dumps(message).decode())

    async def messages_missed(self, _: object) -> None:
        """Send the present state of queries, spaces and streams again, because changes may have been missed."""
        await self.rights_changed(None)
        shown, standings = await database_sync_to_async(self._all_standings)()
        if shown != self.examples:
            await self.examples_changed({"shown": shown})
        await self.query_status({"queries": standings})
        await self.definitions_changed(None)
        self.broadcast("changes.missed", orjson.dumps({"type": "changes.missed"}).decode())

    async def layer_status(self, event: dict[str, Any]) -> None:
        """Send the status of a layer; it replaces a waiting one of the same layer."""
        layer = event["document"]
        self.broadcast(
            f"layer.{layer['name']}", orjson.dumps(retold_in({"type": "layer.status", "layer": layer})).decode()
        )

    # One method for each type of message.

    async def on_filter_check(
        self, reference: Reference, where: str, names: list[str], objects: list[dict[str, Any]]
    ) -> None:
        """Reply what is wrong with a filter, and how many of the given objects it matches."""
        told = await sync_to_async(check_filter_text, thread_sensitive=False)(where, names, objects)
        self.say({"type": "filter.checked", "id": reference, **told})

    async def on_query_register(self, reference: Reference, name: str, plan: dict[str, Any], **options: Any) -> None:
        """Save and register a query."""
        query = await database_sync_to_async(queries.register)(self.user, name.strip(), plan, **options)
        self._say_status(reference, query)

    async def on_query_edit(self, reference: Reference, query: int, **changes: Any) -> None:
        """Change a query."""
        if "name" in changes:
            changes["name"] = changes["name"].strip()
        self._say_status(reference, await database_sync_to_async(queries.edit)(self.user, query, **changes))

    async def on_query_cancel(self, reference: Reference, query: int) -> None:
        """End a query."""
        self._say_status(reference, await database_sync_to_async(queries.cancel)(self.user, query))

    async def on_examples_show(self, reference: Reference, shown: bool) -> None:
        """Show the user the examples of the demonstration, or remove them."""
        await database_sync_to_async(queries.show_examples)(self.user, shown)
        self.say({"type": "examples.shown", "id": reference, "shown": shown})

    async def on_query_list(
        self,
        reference: Reference,
        search: str,
        limit: int,
        spaces: list[str] | None = None,
        after: dict[str, Any] | None = None,
    ) -> None:
        """Reply with a page of the list of queries; from now on the client gets changes of the queries on it."""
        begin = Position.of(**after) if after else START
        page = await database_sync_to_async(page_of)(self.user, search, spaces, begin, limit)
        self.listing.take(page, search, spaces, begin)
        found = [self.shown(query.document()) | {"mine": query.owner_id == self.user.pk} for query in page.queries]
        following = None if page.end == END else page.end.document()
        self.say({"type": "query.listed", "id": reference, "queries": found, "total": page.total, "next": following})

    async def on_query_subscribe(
        self,
        reference: Reference,
        format: str,
        joined: bool,
        query: int | None = None,
        queries: list[int] | None = None,
        held: dict[str, Any] | None = None,
    ) -> None:
        """Start to send the answer of a query, or of several queries, leaving out those that the user may not see."""
        _one_or_several("query.subscribe", query, queries)
        if queries is None:
            found = [await database_sync_to_async(visible)(self.user, query)]
        else:
            found = await database_sync_to_async(visible_among)(self.user, queries)
        of_space = defaultdict(list)
        for known in found:
            of_space[known.space_id].append(known.pk)
        since = ResumePoint(**held) if held else None
        once = {known.pk for known in found if known.told_once}
        for space, numbers in of_space.items():
            await self.hubs.subscribe(numbers, format, await self.hubs.of(space), since, joined, once)

    async def on_query_unsubscribe(
        self, reference: Reference, query: int | None = None, queries: list[int] | None = None
    ) -> None:
        """Stop sending the answer of a query, or of several queries."""
        for number in _one_or_several("query.unsubscribe", query, queries):
            self.hubs.unsubscribe(number)

    async def on_query_snapshot(self, reference: Reference, query: int) -> None:
        """Ask for a snapshot of a subscribed query."""
        if query not in self.hubs.subscriptions:
            raise Refused(
                "query",
                gettext("query must be one that this connection has subscribed; got %(query)s") % {"query": query},
            )
        self.hubs.ask([self.hubs.subscriptions[query]])

    async def on_roles_subscribe(self, reference: Reference, query: int) -> None:
        """Start to send the roles of the servers that answer a query."""
        if query not in self.hubs.subscriptions:
            raise Refused(
                "query",
                gettext("query must be one that this connection has subscribed; got %(query)s") % {"query": query},
            )
        found = await database_sync_to_async(visible)(self.user, query)
        self.hubs.follow_roles(query, found.plan)

    async def on_roles_unsubscribe(self, reference: Reference, query: int) -> None:
        """Stop sending the roles of the servers that answer a query."""
        self.hubs.leave_roles(query)

    async def on_regions_subscribe(self, reference: Reference, space: str = EARTH.name) -> None:
        """Start to send the regions of a space, with their loads, and how they changed."""
        if not await database_sync_to_async(Space.objects.filter(pk=space).exists)():
            raise Refused(
                "space", gettext("space must be one that there is; got %(space)s") % {"space": f"{space!r:.80}"}
            )
        await self.hubs.follow_regions(space)

    async def on_regions_unsubscribe(self, reference: Reference, space: str = EARTH.name) -> None:
        """Stop sending the regions of a space."""
        self.hubs.leave_regions(space)

    async def on_view_subscribe(
        self,
        reference: Reference,
        streams: list[str],
        area: dict[str, Any],
        format: str,
        joined: bool,
        whole: list[str],
        watched: dict[str, list[str]],
    ) -> None:
        """Open the viewport, or move it."""
        # A map that is panned asks for the same streams again and again.
        if not self.viewed.keys() >= (asked := {*streams, *watched}):
            self.viewed |= await database_sync_to_async(queries.viewed_streams)(sorted(asked))
        plans = view_plans(self.viewed, streams, area, whole)
        await self.viewport.show(reference, plans, watch_plans(self.viewed, watched), format, joined)

    async def on_view_unsubscribe(self, reference: Reference) -> None:
        """Close the viewport."""
        await self.viewport.show(reference, {}, {}, "json")

    async def on_sketch_ask(
        self, reference: Reference, format: str, plan: dict[str, Any] | None = None, text: str | None = None
    ) -> None:
        """Ask a sketch a question, given as a plan or as a text."""
        space, plan, note = await database_sync_to_async(queries.question)(plan, text)
        await self.asked.ask(reference, space, plan, format, note)

    async def on_sketch_end(self, reference: Reference, query: int) -> None:
        """End a question to a sketch."""
        self.asked.end(query)

    async def on_table_get(self, reference: Reference, **fields: Any) -> None:
        """Reply with the rows that a table stores under a key."""
        await self._ask(reference, "table.get", fields)

    async def on_table_query(self, reference: Reference, **fields: Any) -> None:
        """Reply with the rows of a table in a box."""
        await self._ask(reference, "table.query", fields)

    async def on_table_join(self, reference: Reference, **fields: Any) -> None:
        """Reply with the pairs of rows of two tables that a join finds."""
        await self._ask(reference, "table.join", fields)

    # Parts of the methods above.

    async def _ask(self, reference: Reference, kind: str, fields: dict[str, Any]) -> None:
        """Start to answer a question to tables when it is its turn; the connection continues meanwhile."""
        if len(self.questions) >= settings.TABLE_QUESTIONS_AT_ONCE:
            rule = gettext("a connection may ask %(table_questions_at_once)s questions to tables at once") % {
                "table_questions_at_once": settings.TABLE_QUESTIONS_AT_ONCE
            }
            raise Refused("rate", gettext("%(rule)s; got one more") % {"rule": rule})
        asked = await database_sync_to_async(questions.question)(self.user, kind, fields)
        task = asyncio.create_task(self._answer(reference, asked))
        self.questions.add(task)
        task.add_done_callback(self.questions.discard)

    async def _answer(self, reference: Reference, asked: questions.HistoryQuestion) -> None:
        try:
            async with fair.TABLES.turn_later(self.user):
                said = await sync_to_async(questions.answer, thread_sensitive=False)(asked, self.ended)
        except Refused as refused:
            said = {"type": "error", **refused.document()}
        except Exception:
            logger.exception("a question to tables failed")
            said = {
                "type": "error",
                "code": "table",
                "message": gettext("the question could not be answered; see the log"),
            }
        with contextlib.suppress(Unread):
            self.say({"id": reference, **said})

    def _say_status(self, reference: Reference, query: Query) -> None:
        mine = query.owner_id == self.user.pk
        self.say({"type": "query.status", "id": reference, **query.document(), "mine": mine})

    async def _within_rate(self) -> bool:
        """Return whether the client keeps to the rate. If not, refuse the message once; if it continues, close."""
        now = time.monotonic()
        if self.bucket.take(now):
            self.warned = False
            return True
        if not self.refusals.take(now):
            await self.close(FLOODED, gettext("too many messages"))
        elif not self.warned:
            self.warned = True
            rate = gettext("at most %(messages_per_second)g messages a second are carried out; this one was not") % {
                "messages_per_second": settings.MESSAGES_PER_SECOND
            }
            raise Refused("rate", rate)
        return False

    async def _greet(self) -> None:
        """Send ``hello``, and the statuses of all visible queries unless the client asks for the list itself."""
        refused = None
        try:
            self.listing = listing_of(self.scope["query_string"])
        except Refused as error:
            self.listing, refused = Listing(), error
        hello, known = await database_sync_to_async(self._greeting)()
        self.say(hello)
        self.listing.learn(known)
        self.outbox.statuses(known)
        if refused:
            self.say({"type": "error", **refused.document()})

    def _greeting(self) -> tuple[dict[str, Any], list[int]]:
        hello: dict[str, Any] = {"type": "hello", "user": self.user.get_username(), "space": EARTH.name}
        hello |= {"dimensions": space_document(EARTH)["dimensions"], **self.definitions()}
        hello |= {"teams": self.teams_of_user()}
        hello |= {"server_time_us": time.time_ns() // 1000}
        self.examples = self.shows_examples()
        return hello, list(self._listed().order_by("pk").values_list("pk", flat=True)) if self.listing.every else []

    def _listed(self) -> QuerySet[Query]:
        """Select the queries of whose changes the client hears although it does not know them yet."""
        listed = self.rights.listed()
        return listed if self.listing.every else listed.filter(owner=self.user.pk)

    def _all_standings(self) -> tuple[bool, list[dict[str, Any]]]:
        """Return whether the user sees the examples, and the state of all queries that the client knows or lists."""
        known = Query.objects.filter(pk__in=self.listing.told) | self._listed()
        standings = [query.standing() for query in known.select_related("owner").order_by("pk")]
        return self.shows_examples(), standings

    async def _look_up(self, numbers: list[int]) -> list[str]:
        return await database_sync_to_async(self._standings)(numbers)

    def _standings(self, numbers: list[int]) -> list[str]:
        """Return the status frames of queries, ordered by number."""
        found = Query.objects.filter(pk__in=numbers).select_related("owner").order_by("pk")
        return [self._status(query.standing()) for query in found]

    def _status(self, standing: dict[str, Any]) -> str:
        document, mine = self.shown(standing["document"]), standing["owner_id"] == self.user.pk
        return status_frame(document, mine, self._sees(standing), self.examples)

    def _sees(self, standing: dict[str, Any]) -> bool:
        """Return whether the user lists a query of which a standing is known."""
        document = standing["document"]
        of = (document["query"], standing["owner_id"], document["shared"], document["team"])
        return self.rights.lists_query(*of)

    def shown(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return what the client gets of the document of a query: all."""
        return document

    def shows_examples(self) -> bool:
        """Return whether the user sees the examples of the demonstration."""
        return RemovedExamples.shown_to(cast("User", self.user))

    def definitions(self) -> dict[str, Any]:
        """Return the spaces and streams that the user may see: all."""
        return definitions()

    async def _transmit(self, frame: str | bytes) -> None:
        content = "text" if isinstance(frame, str) else "bytes"
        await self.scope["send"]({"type": "websocket.send", content: frame})

    async def _recover(self, lost: list[AnswerSubscription]) -> None:
        self.hubs.ask(lost, resync=True)

    async def _go_on(self, late: list[AnswerSubscription]) -> None:
        await self.hubs.go_on(late)

    def _sender_ended(self, sender: asyncio.Task[None]) -> None:
        """Close the connection if its sender failed, so that the client opens a new one."""
        error = None if sender.cancelled() else sender.exception()
        if error is not None and not isinstance(error, OSError):  # OSError: the client has gone
            logger.error("a connection's sender failed: %s", error, exc_info=error)
            asyncio.get_running_loop().create_task(self.close(BROKEN))

    async def _leave(self) -> None:
        """Release everything, even if parts of it fail."""
        self.joined = False
        self.ended.set()  # ends questions that are being answered
        for task in self.explaining:
            task.cancel()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.hubs.leave)
            stack.callback(self.viewport.close)
            stack.callback(self.asked.close)
            stack.push_async_callback(self.end_backtest)
            self.sender.cancel()
            await asyncio.wait([self.sender])


def _one_or_several(kind: str, query: int | None, queries: list[int] | None) -> list[int]:
    """Return the numbers that a message has; raise Refused unless it has either that of a query, or a list."""
    if query is not None and queries is None:
        return [query]
    if query is None and queries is not None:
        return queries
    raise Refused(
        "fields", gettext("%(kind)s needs either query, a number, or queries, a list of numbers") % {"kind": kind}
    )


def _examples() -> list[int]:
    return list(Query.objects.alive().examples().order_by("pk").values_list("pk", flat=True))


def definitions() -> dict[str, Any]:
    """Return the lists of spaces and streams, as ``hello`` and ``stream.list`` have them."""
    spaces = [{"title": str(space), **space_document(space.parsed)} for space in Space.objects.all()]
    return {"spaces": spaces, "streams": [stream.summary() for stream in Stream.objects.all()]}

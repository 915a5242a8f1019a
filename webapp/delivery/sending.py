"""Send messages by their channels: many at the same time, each within its time."""

import asyncio
import logging
import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from typing import Any, TypeVar, cast

import aiohttp
from django.conf import settings
from django.utils import timezone

from streaming.errors import LookoutError
from streaming.gateway.http_session import guarded_session
from webapp.delivery.channels import make_channel
from webapp.delivery.channels.base import Message, NotDelivered
from webapp.delivery.claims import Outcome, claim, settle
from webapp.delivery.limits import release
from webapp.delivery.messages import message_of
from webapp.machine.logs import without_secrets
from webapp.models import Channel, Delivery
from webapp.models.languages import language_of_user

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

# How long to wait for attempts before their outcomes are saved together, and more are claimed.
_TICK_S = 0.05
# Channels whose libraries block, such as e-mail, send in threads.
_THREADS = 32
_ERROR_CHARACTERS = 1_000


class Sender:
    """Sends messages in a thread with an event loop; a context that waits for what is under way.

    Examples
    --------
    >>> with Sender(1.0) as sender:
    ...     sender.run(asyncio.sleep(0, "done")).result()
    'done'
    """

    def __init__(self, attempt_s: float) -> None:
        self.attempt_s = attempt_s
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sender", daemon=True)
        self._executor = ThreadPoolExecutor(_THREADS, "sending")

    def __enter__(self) -> "Sender":
        self._loop.set_default_executor(self._executor)
        self._thread.start()
        self._session = self.run(self._opened()).result()
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self._session.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._executor.shutdown(wait=False)

    async def _opened(self) -> aiohttp.ClientSession:
        return guarded_session(settings.DELIVERY_ACCESS, self.attempt_s)

    def run(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Run a coroutine in the event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def send(self, channel: Channel, message: Message) -> Future[int | None]:
        """Begin an attempt; its result is the status code or None, its error a `NotDelivered` without secrets."""
        return self.run(self._attempt(channel, message))

    async def _attempt(self, channel: Channel, message: Message) -> int | None:
        made = None
        try:
            made = make_channel(channel.kind, channel.options, channel.secrets)
            async with asyncio.timeout(self.attempt_s):
                return await made.send(message, self._session)
        except TimeoutError:
            raise NotDelivered(
                "an attempt must end within %(attempt_s)g s; this one did not", attempt_s=self.attempt_s
            ) from None
        except Exception as error:  # whatever a channel of another package raises is a failed attempt
            expected = isinstance(error, LookoutError | OSError | aiohttp.ClientError)
            words = str(error) if expected and str(error) else f"{type(error).__name__}: {error}"
            words = made.without_secrets(words) if made else words
            told = getattr(error, "status", None), getattr(error, "final", False), getattr(error, "retry_after_s", 0.0)
            status = told[0] if isinstance(told[0], int) else None
            raise NotDelivered(without_secrets(words)[:_ERROR_CHARACTERS], status, told[1], told[2]) from None


def send_now(channel: Channel, message: Message) -> tuple[int | None, float]:
    """Send one message at once, for a test of a channel; return the status code, and how long it took in seconds.

    Raises
    ------
    NotDelivered
        If it was not accepted.
    """
    began_s = time.monotonic()
    with Sender(settings.DELIVERY_PACE.attempt_s) as sender:
        return sender.send(channel, message).result(), time.monotonic() - began_s


_RUNNING = threading.Lock()
# Set when the worker is told to end: no run begins further attempts.
ENDING = threading.Event()


def deliver_due() -> int:
    """Send what is due until nothing is left, or for `DeliveryPace.run_s` seconds; return the number of attempts.

    Only one run at a time sends in a process. Any number of processes may send: each claims what it sends.
    """
    now = timezone.now()
    if not (Delivery.objects.due(now).exists() or Delivery.objects.unreleased(now).exists()):
        return 0
    if not _RUNNING.acquire(blocking=False):
        return 0  # the other run looks for due deliveries again and again
    try:
        with Sender(settings.DELIVERY_PACE.attempt_s) as sender:
            return _SendingRun(sender).go()
    finally:
        _RUNNING.release()


class _SendingRun:
    """One run: claims, attempts, outcomes."""

    def __init__(self, sender: Sender) -> None:
        self.sender, self.pace, self.token = sender, settings.DELIVERY_PACE, uuid.uuid4().hex
        self.jitter, self.begun = random.Random(), 0
        self.flights: dict[Future[int | None], tuple[Delivery, datetime, float]] = {}

    def go(self) -> int:
        """Send until nothing is due; return the number of attempts."""
        until_s = time.monotonic() + self.pace.run_s
        while True:
            if time.monotonic() < until_s and not ENDING.is_set():
                self._take_off()
            if not self.flights:
                return self.begun
            self._land(wait(self.flights, _TICK_S).done)

    def _take_off(self) -> None:
        """Claim what is due, and begin to send it."""
        now = timezone.now()
        release(now)
        under_way = [delivery for delivery, *_ in self.flights.values()]
        busy = Counter(delivery.channel_id for delivery in under_way)
        numbers = [delivery.pk for delivery in under_way]
        for delivery in claim(now, self.token, self.pace, lambda channel: self.pace.at_once - busy[channel], numbers):
            message = message_of(delivery.key, delivery.document, language_of_user(delivery.subscription.user_id))
            flight = self.sender.send(delivery.channel, message)
            self.flights[flight] = delivery, now, time.monotonic()
            self.begun += 1

    def _land(self, done: Iterable[Future[int | None]]) -> None:
        """Save the outcomes of attempts that have ended."""
        if done:
            outcomes = [self._outcome(flight, *self.flights.pop(flight)) for flight in done]
            settle(outcomes, self.token, timezone.now(), self.pace, self.jitter)
            failed: dict[str, list[Outcome]] = {}
            for outcome in (outcome for outcome in outcomes if outcome.error):
                failed.setdefault(outcome.delivery.channel.name, []).append(outcome)
            for channel, some in failed.items():
                words = "%d attempts to deliver by %s failed; the last one, of delivery %d: %s"
                logger.warning(words, len(some), channel, some[-1].delivery.pk, some[-1].error)

    def _outcome(self, flight: Future[int | None], delivery: Delivery, at: datetime, began_s: float) -> Outcome:
        took_s = time.monotonic() - began_s
        error = flight.exception()
        if error is None:
            return Outcome(delivery, at, took_s, status=flight.result())
        known = (
            error
            if isinstance(error, NotDelivered)
            else NotDelivered.of(cast("Exception", error), type(error).__name__)
        )
        return Outcome(delivery, at, took_s, str(known), known.status, known.final, known.retry_after_s)

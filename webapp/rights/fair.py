"""Turns for what takes long: few are taken at once, and users who wait get them one after the other.

Each web process gives its own turns, so with n web processes n times as many are taken at once. A queue that they share
would have to notice when one of them dies.
"""

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.rights.access import Asker, Guest
from webapp.words.refusals import Refused


@dataclass(frozen=True)
class TurnLimits:
    """How many turns there are.

    Parameters
    ----------
    at_once : int
        The turns that may be taken at the same time.
    wait_s : float
        How long one waits for a turn.
    per_user, waiting : int
        The turns that one user may have at the same time, and for how many more a user may wait.
    """

    at_once: int
    wait_s: float
    per_user: int = field(default_factory=lambda: settings.WORK_PER_USER)
    waiting: int = field(default_factory=lambda: settings.WORK_WAITING)


class FairTurns:
    """Turns that users take one after the other: nobody gets a second one while somebody waits for a first one.

    Parameters
    ----------
    what : str
        What is done in a turn, in the plural, for people.
    limits : callable
        Returns the limits that hold now.
    """

    def __init__(self, what: str | Promise, limits: Callable[[], TurnLimits]) -> None:
        self._what, self._limits, self._lock = what, limits, threading.Lock()
        self._taken: Counter[Hashable] = Counter()
        # Users in the order in which they get turns: who gets or ends one, and waits for more, goes to the end.
        self._waiting: OrderedDict[Hashable, deque[Future[None]]] = OrderedDict()

    @contextmanager
    def turn(self, user: Asker) -> Iterator[None]:
        """Wait for a turn of a user, in a thread, and have it.

        Raises
        ------
        Refused
            ``busy`` if the user waits for too many already, or there is no turn in time.
        """
        who, limits = _who(user), self._limits()
        ready = self._asked(who, limits)
        try:
            try:
                ready.result(limits.wait_s)
            except TimeoutError:
                raise self._late(limits) from None
            yield
        finally:
            self._ended(who, ready)

    @asynccontextmanager
    async def turn_later(self, user: Asker) -> AsyncIterator[None]:
        """Do as `turn` does, in an event loop."""
        who, limits = _who(user), self._limits()
        ready = self._asked(who, limits)
        try:
            try:
                await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(ready)), limits.wait_s)
            except TimeoutError:
                raise self._late(limits) from None
            yield
        finally:
            self._ended(who, ready)

    def _asked(self, who: Hashable, limits: TurnLimits) -> Future[None]:
        """Return what is done once it is this user's turn."""
        with self._lock:
            mine = self._waiting.setdefault(who, deque())
            ready: Future[None] = Future()
            mine.append(ready)
            self._give()
            if len(mine) > limits.waiting:
                mine.remove(ready)
                rule = gettext("a user may wait for at most %(waiting)s %(what)s") % {
                    "waiting": limits.waiting,
                    "what": self._what,
                }
                raise Refused("busy", gettext("%(rule)s: try again in a moment; got one more") % {"rule": rule})
            return ready

    def _ended(self, who: Hashable, ready: Future[None]) -> None:
        with self._lock:
            if ready.done():
                self._taken[who] -= 1
                self._taken += Counter()  # forgets who has none
                if who in self._waiting:
                    self._waiting.move_to_end(who)
            else:
                self._waiting[who].remove(ready)
                if not self._waiting[who]:
                    del self._waiting[who]
            self._give()

    def _give(self) -> None:
        """Give the free turns to those who wait, in their order."""
        limits = self._limits()
        while self._taken.total() < limits.at_once:
            who = next((one for one in self._waiting if self._taken[one] < limits.per_user), None)
            if who is None:
                return
            mine = self._waiting[who]
            mine.popleft().set_result(None)
            self._taken[who] += 1
            self._waiting.move_to_end(who)
            if not mine:
                del self._waiting[who]

    def _late(self, limits: TurnLimits) -> Refused:
        rule = gettext("at most %(at_once)s %(what)s at once: try again in a moment") % {
            "at_once": limits.at_once,
            "what": self._what,
        }
        return Refused(
            "busy",
            gettext("%(rule)s; got one more for %(wait_s)s s") % {"rule": rule, "wait_s": f"{limits.wait_s:g}"},
        )


def _who(user: Asker) -> Hashable:
    return ("link", user.link.pk) if isinstance(user, Guest) else user.pk


TABLES = FairTurns(_("questions to tables"), lambda: TurnLimits(settings.TABLE_ANSWERS_AT_ONCE, settings.TABLE_WAIT_S))
REPORTS = FairTurns(_("reports"), lambda: TurnLimits(settings.REPORTS_AT_ONCE, settings.REPORT_WAIT_S))
REPLAYS = FairTurns(_("pages of replays"), lambda: TurnLimits(settings.REPLAYS_AT_ONCE, settings.REPLAY_WAIT_S))
# Of their own, so that no object on the map waits for answers.
REPLAYED_ANSWERS = FairTurns(
    _("answers of replays"), lambda: TurnLimits(settings.REPLAYS_AT_ONCE, settings.REPLAY_WAIT_S)
)
BACKTESTS = FairTurns(_("back-tests"), lambda: TurnLimits(settings.BACKTESTS_AT_ONCE, settings.BACKTEST_WAIT_S))
# A look into a file that is about to be imported takes seconds.
LOOKS = FairTurns(_("looks into files"), lambda: TurnLimits(at_once=2, wait_s=20.0))

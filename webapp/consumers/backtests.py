"""The messages about back-tests."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from channels.db import database_sync_to_async
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.consumers.connection import ClientConnection
from webapp.consumers.messages import Reference
from webapp.consumers.outbox import Unread
from webapp.questions import backtests
from webapp.rights.limits import FLOODED
from webapp.words.refusals import Refused

logger = logging.getLogger(__name__)


class Backtests(ClientConnection):
    """The part of a connection that tries plans on what is stored; it ends with the connection.

    Attributes
    ----------
    backtest : asyncio.Task or None
        The back-test that is being made.
    """

    backtest: asyncio.Task | None = None

    async def on_backtest_start(self, reference: Reference, plan: dict[str, Any], span: dict[str, Any]) -> None:
        """Try a plan on what is stored: send how it goes, then what it would have told."""
        if self.backtest is not None and not self.backtest.done():
            raise Refused("limit", _("a connection may have one back-test at once; got one more"))

        async def checked() -> dict[str, Any]:
            return await database_sync_to_async(backtests.question)(self.user, plan, span)

        self.backtest = asyncio.create_task(self._try(reference, await checked(), checked))

    async def on_backtest_cancel(self, reference: Reference) -> None:
        """End the back-test; nothing happens if there is none."""
        await self.end_backtest()
        self.say({"type": "backtest.cancelled", "id": reference})

    async def end_backtest(self) -> None:
        """End the back-test, and its process."""
        if self.backtest is not None:
            self.backtest.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.backtest
            self.backtest = None

    async def _try(
        self, reference: Reference, asked: dict[str, Any], checked: Callable[[], Coroutine[Any, Any, object]]
    ) -> None:
        about = {"id": reference, "from_us": asked["span"][0], "to_us": asked["span"][1]}
        try:
            async with aclosing(backtests.lines(self.user, asked)) as lines:
                async for line in lines:
                    kind = "backtest.result" if "summary" in line else "backtest.progress"
                    if kind == "backtest.result":
                        await checked()  # again: the user's rights may have changed meanwhile
                    self.say({"type": kind, **about, **line})
        except Refused as refused:
            self._say_error(reference, refused.code, refused.message)
        except Unread as error:
            await self.close(FLOODED, str(error))
        except Exception:
            logger.exception("a back-test failed")
            self._say_error(reference, "history", gettext("the back-test could not be made; see the log"))

    def _say_error(self, reference: Reference, code: str, message: str) -> None:
        with contextlib.suppress(Unread):
            self.say({"type": "error", "id": reference, "code": code, "message": message})

"""Back-tests for users: a plan that is not saved yet, on what is stored, in a process of its own."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import orjson
from django.conf import settings
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.confined import IN_BACKGROUND, command
from streaming.errors import LookoutError
from streaming.kinds.base import Evaluation
from streaming.kinds.registry import kind_of
from streaming.plans import parse_plan
from streaming.spaces import space_document
from webapp.alarms.rules import check_watched
from webapp.history.questions import parse_span
from webapp.history.upkeep import extent_in_words
from webapp.models import Query, Stream
from webapp.queries.queries import checked_plan
from webapp.queries.waiting import check_readable, versions_of
from webapp.rights.access import Asker, rights_of
from webapp.rights.fair import BACKTESTS
from webapp.words.refusals import Refused

US = 1_000_000
# The parent reads lines; a summary is one of them.
MOST_LINE_BYTES = 64 << 20
# The process reads stored elements before it plays them, and that counts, too.
GRACE_S = 30.0
_CHILDREN: set[asyncio.subprocess.Process] = set()


def question(user: Asker, plan: Any, span: dict[str, Any]) -> dict[str, Any]:
    """Return the question of a message as the process takes it (see `streaming.backtest`), checked.

    Raises
    ------
    Refused
        As `checked_plan` and `check_watched` do; ``history`` where a stream is not stored; ``plan`` where a plan has no
        objects that enter and leave; ``fields`` where the span is not valid.
    """
    rights = rights_of(user)
    document = checked_plan(plan, rights)
    check_watched(user, document)
    stream = Stream.objects.select_related("space").get(name=document["stream"])
    space = stream.space.parsed
    parsed = parse_plan(document, space)
    kind = kind_of(parsed)
    if not (kind.evaluation(parsed).watched or kind.evaluation(parsed) is Evaluation.RULE) or parsed.emit == "all":
        what = (
            gettext("a query that emits all")
            if parsed.emit == "all"
            else gettext("a %(kind)s query with figures or reports") % {"kind": document["kind"]}
        )
        raise Refused(
            "plan",
            gettext("a back-test must be of a query whose answer objects enter and leave; got %(what)s")
            % {"what": what},
        )
    watched = Query.objects.in_bulk(kind.queries(parsed))
    tried = Query(pk=max(watched, default=0) + 1, owner_id=rights.user_id, space=stream.space, plan=document)
    played = [*watched.values(), tried]
    check_readable(played, rights)
    all_parsed = [parse_plan(one.plan, space) for one in played]
    streams = {one.stream for one in all_parsed}
    sources = [source for one in all_parsed for source in kind_of(one).sources(one)]
    streams |= {source.name for source in sources if source.type == "stream"}
    known = {one.name: one for one in Stream.objects.filter(name__in=streams)}
    for name in sorted(streams):
        _check_stored(name, known.get(name))
    return {
        "plans": {str(one.pk): one.plan for one in played},
        "of": tried.pk,
        "span": _span(span),
        "ttl_s": {name: one.ttl_s for name, one in known.items()},
        "layers": versions_of(played),
        "space": space_document(space),
        "limits": {"elements": settings.BACKTEST_ELEMENTS, "seconds": settings.BACKTEST_S},
        "history": str(settings.HISTORY_DIR),
        "layers_folder": str(settings.LAYERS_DIR),
        "spans": settings.BACKTEST_SPANS,
    }


def _check_stored(name: str, stream: Stream | None) -> None:
    if stream is None or not (stream.stored or extent_in_words(stream)):
        rule = gettext("the elements of %(name)s are not stored, so there is nothing to try this on") % {"name": name}
        raise Refused(
            "history",
            gettext("%(rule)s. An administrator can switch on “store elements” of the stream") % {"rule": rule},
        )


def _span(document: dict[str, Any]) -> tuple[int, int]:
    try:
        start, stop = parse_span(document)
    except LookoutError as error:
        raise Refused("fields", str(error)) from None
    if start is None:
        raise Refused("fields", _("span must have a beginning, from; got none"))
    stop = min(stop or time.time_ns() // 1_000, time.time_ns() // 1_000)
    longest_us = settings.BACKTEST_DAYS * 86_400 * US
    if not 0 < stop - start <= longest_us:
        rule = gettext("span must begin before it ends, and before now, and last %(backtest_days)s days at most") % {
            "backtest_days": settings.BACKTEST_DAYS
        }
        raise Refused(
            "fields", gettext("%(rule)s; got %(document)s") % {"rule": rule, "document": f"{document!r:.120}"}
        )
    return start, stop


async def lines(user: Asker, asked: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """Make a back-test when it is the user's turn; yield what the process tells. The process ends if this is closed.

    Raises
    ------
    Refused
        ``busy`` as `FairTurns.turn` does; ``history`` where it cannot be made.
    """
    async with BACKTESTS.turn_later(user), aclosing(_lines(asked)) as told:
        async for line in told:
            yield line


async def _started(asked: dict[str, Any]) -> asyncio.subprocess.Process:
    """Start the process of a back-test, which reads its question."""
    child = await asyncio.create_subprocess_exec(
        *command(IN_BACKGROUND, "streaming.backtest", str(settings.WORK_MEMORY_BYTES)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=settings.BASE_DIR,
        limit=MOST_LINE_BYTES,
        start_new_session=True,
    )
    _CHILDREN.add(child)
    assert child.stdin is not None  # it is a pipe
    child.stdin.write(orjson.dumps(asked))
    child.stdin.close()
    return child


async def _lines(asked: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    child = await _started(asked)
    assert child.stdout is not None  # it is a pipe
    try:
        async with asyncio.timeout(settings.BACKTEST_S + GRACE_S):
            async for line in child.stdout:
                told = orjson.loads(line)
                if "error" in told:
                    raise Refused("history", str(LookoutError.of_document(told["error"])))
                yield told
                if "summary" in told:
                    return
        raise Refused(
            "history", gettext("the back-test ended with code %(value)s; see the log") % {"value": await child.wait()}
        )
    except TimeoutError:
        rule = gettext("a back-test must read what is stored within %(backtest_s)g s: choose a shorter time") % {
            "backtest_s": settings.BACKTEST_S
        }
        raise Refused("history", gettext("%(rule)s; got one that takes longer") % {"rule": rule}) from None
    finally:
        ending = asyncio.ensure_future(_end(child))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise


async def _end(child: asyncio.subprocess.Process) -> None:
    """End a process, and read what it has written, so that nothing of it is left."""
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    assert child.stdout is not None  # it is a pipe
    await child.stdout.read()
    await child.wait()
    _CHILDREN.discard(child)

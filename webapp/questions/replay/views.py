"""``/replay/``: what the map replays, for users who have logged in and for programs with an API token."""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from streaming.errors import LookoutError
from streaming.history import History
from streaming.replay.elements import heard_times, read_page
from streaming.results import frame
from webapp.machine.children import CHILDREN
from webapp.models import Stream
from webapp.questions.replay.answers import page_of_answers
from webapp.questions.replay.asking import check_names, life_s, replayed_stream, replayed_streams, span, wanted, whole
from webapp.questions.replay.events import events_between, newest_events
from webapp.rights.access import Asker
from webapp.rights.fair import REPLAYS
from webapp.rights.guards import user_of
from webapp.rights.guesses import TOO_MANY
from webapp.words.refusals import Refused

ARROW = "application/vnd.apache.arrow.stream"
STATUSES = {"stream": 404, "query": 404, "busy": 503}

View = Callable[..., HttpResponse]


def for_users(view: View) -> View:
    """Return a view of a user's GET that answers whoever has logged in, and says in JSON what it refuses."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        user, busy = user_of(request)
        if busy:
            return _error(429, str(TOO_MANY[1]))
        if not user.is_authenticated:
            response = _error(401, gettext("log in first, or send an API token as `Authorization: Bearer <token>`"))
            response.headers["WWW-Authenticate"] = "Bearer"
            return response
        if request.method not in ("GET", "HEAD"):
            return _error(405, gettext("method must be GET; got %(method)s") % {"method": request.method})
        try:
            return view(request, user, *arguments, **named)
        except Refused as refused:
            return _error(STATUSES.get(refused.code, 400), refused.message)
        except LookoutError as error:
            return _error(400, str(error))

    return guarded


@for_users
def stored(request: HttpRequest, user: Asker) -> HttpResponse:
    """Respond with the streams that can be replayed, and when their stored elements were heard."""
    with REPLAYS.turn(user):
        streams = [_stored(stream) for stream in replayed_streams()]
    return JsonResponse({"streams": streams, "now_us": time.time_ns() // 1000})


def _stored(stream: Stream) -> dict[str, Any]:
    first_us, last_us = heard_times(_history(stream), stream.name) or (None, None)
    return {"name": stream.name, "life_s": life_s(stream), "first_us": first_us, "last_us": last_us}


@for_users
def elements(request: HttpRequest, user: Asker, name: str) -> HttpResponse:
    """Respond with a page of a stream's stored elements in an area, as a binary frame of the websocket."""
    stream = replayed_stream(name)
    asked = wanted(stream, request.GET.dict())
    with REPLAYS.turn(user):
        page = CHILDREN.run(
            read_page, (_history(stream), asked), settings.WORK_MEMORY_BYTES, settings.REPLAY_PATIENCE_S
        )
    head = {
        "type": "replay.elements",
        "stream": name,
        "from_us": asked.from_us,
        "until_us": page.until_us,
        "scene": page.scene,
        "life_us": asked.life_us,
    }
    return HttpResponse(frame(head, page.rows), content_type=ARROW)


@for_users
def answers(request: HttpRequest, user: Asker) -> HttpResponse:
    """Respond with a page of the answers of saved queries, as a binary frame of the websocket."""
    return HttpResponse(page_of_answers(user, request.GET.dict()), content_type=ARROW)


@for_users
def events(request: HttpRequest, user: Asker) -> HttpResponse:
    """Respond with the recorded events of the queries that the user sees, within a span."""
    given = request.GET.dict()
    check_names(given, ("from_us", "to_us"))
    return HttpResponse(orjson.dumps(events_between(user, *span(given))), content_type="application/json")


@for_users
def query_events(request: HttpRequest, user: Asker, number: int) -> HttpResponse:
    """Respond with a page of the events that are kept of a query that the user sees, the newest first."""
    given = request.GET.dict()
    check_names(given, ("before",))
    before = whole("before", given["before"]) if "before" in given else None
    return HttpResponse(orjson.dumps(newest_events(user, number, before)), content_type="application/json")


def _history(stream: Stream) -> History:
    return History(settings.HISTORY_DIR, stream.space.parsed)


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)

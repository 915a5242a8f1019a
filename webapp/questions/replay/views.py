"""``/replay/``: what the map replays, for users who have logged in and for programs with an API token."""

import time
from typing import Any

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

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
from webapp.rights.guards import for_users

ARROW = "application/vnd.apache.arrow.stream"


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

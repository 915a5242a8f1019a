"""``/reports/<stream>``: reports over HTTP, for users who have logged in and for programs with an API token."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from streaming.csv_text import CSV_TYPE
from streaming.errors import LookoutError
from streaming.reports import ReportLimits
from streaming.reports.answers import ReportRequest, made
from webapp.machine.children import CHILDREN
from webapp.questions.reports.asking import question
from webapp.rights.fair import REPORTS
from webapp.rights.guards import user_of
from webapp.rights.guesses import TOO_MANY
from webapp.words.refusals import Refused

STATUSES = {"stream": 404, "query": 404, "layer": 404, "busy": 503}


@never_cache
def report(request: HttpRequest, name: str) -> HttpResponse:
    """Respond with a report of a stream's stored elements; see docs/reports.md."""
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
        asked = question(user, name, request.GET.dict())
        with REPORTS.turn(user):
            return _answer(asked)
    except Refused as refused:
        return _error(STATUSES.get(refused.code, 400), refused.message)
    except LookoutError as error:
        return _error(400, str(error))


def _answer(asked: ReportRequest) -> HttpResponse:
    """Make a report. This takes some seconds, in a process of its own, while the thread of the request waits."""
    limits = ReportLimits(settings.REPORT_SCANNED, settings.REPORT_ELEMENTS)
    text = CHILDREN.run(
        made,
        (asked, settings.HISTORY_DIR, limits, settings.REPORT_ROWS, settings.REPORT_CSV_ROWS),
        settings.WORK_MEMORY_BYTES,
        settings.REPORT_S,
    )
    if asked.format == "json":
        return HttpResponse(text, content_type="application/json")
    response = HttpResponse(text, content_type=CSV_TYPE)
    response.headers["Content-Disposition"] = f'attachment; filename="{asked.stream}-{asked.report}.csv"'
    return response


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)

"""``/reports/<stream>``: reports over HTTP, for users who have logged in and for programs with an API token."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse

from streaming.csv_text import CSV_TYPE
from streaming.reports import ReportLimits
from streaming.reports.answers import ReportRequest, made
from webapp.machine.children import CHILDREN
from webapp.questions.reports.asking import question
from webapp.rights.access import Asker
from webapp.rights.fair import REPORTS
from webapp.rights.guards import for_users


@for_users
def report(request: HttpRequest, user: Asker, name: str) -> HttpResponse:
    """Respond with a report of a stream's stored elements; see docs/reports.md."""
    asked = question(user, name, request.GET.dict())
    with REPORTS.turn(user):
        return _answer(asked)


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

"""``/reports/<stream>``: reports over HTTP, for users who have logged in and for programs with an API token."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import orjson
import polars as pl
from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from streaming.history import History
from streaming.language import thousands
from streaming.reports import InvalidReport, Report, ReportLimits, read_fixes
from webapp.consumers.access import TOO_MANY
from webapp.csv_text import csv_response
from webapp.operations.access import user_of
from webapp.refusals import Refused
from webapp.reports.asking import ReportQuestion, question
from webapp.reports.tables import TOTALS, counts_of, in_text, rows_of, table_of, told

STATUSES = {"stream": 404, "query": 404, "layer": 404, "busy": 503}
_TURNS = threading.BoundedSemaphore(settings.REPORTS_AT_ONCE)


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
        with _turn():
            return _answer(asked)
    except Refused as refused:
        return _error(STATUSES.get(refused.code, 400), refused.message)
    except InvalidReport as error:
        return _error(400, str(error))


@contextmanager
def _turn() -> Iterator[None]:
    """Wait until few enough reports are being made; raise Refused after some seconds."""
    if not _TURNS.acquire(timeout=settings.REPORT_WAIT_S):
        rule = gettext("at most %(reports_at_once)s reports are made at once: try again in a moment") % {
            "reports_at_once": settings.REPORTS_AT_ONCE
        }
        raise Refused(
            "busy",
            gettext("%(rule)s; got one more for %(report_wait_s)s s")
            % {"rule": rule, "report_wait_s": f"{settings.REPORT_WAIT_S:g}"},
        )
    try:
        yield
    finally:
        _TURNS.release()


def _answer(asked: ReportQuestion) -> HttpResponse:
    """Make a report. This takes some seconds, in the thread of the request; Polars computes without Python's lock."""
    terms = asked.terms
    history = History(settings.HISTORY_DIR, asked.stream.space.parsed)
    limits = ReportLimits(settings.REPORT_SCANNED, settings.REPORT_ELEMENTS)
    area = None if asked.key else terms.area  # the way of an object also where it never came near the area
    fixes = read_fixes(history, asked.stream.name, terms.span, area, limits, asked.key)
    made = Report(fixes, terms)
    table = table_of(made, asked.report)
    if asked.format == "csv":
        return _csv(asked, table)
    rows = table.head(settings.REPORT_ROWS)
    document = {
        "stream": asked.stream.name,
        "report": asked.report,
        "terms": {
            "from_us": terms.span[0],
            "to_us": terms.span[1],
            "zone": terms.zone.key,
            "gap_s": terms.gap_us / 1e6,
            "fastest_mps": terms.fastest_mps,
            "stop_m": terms.stop_radius_m,
            "stop_s": terms.stop_us / 1e6,
            "bounds": terms.area and terms.area.bounds,
        },
        "counts": counts_of(fixes, made),
        "rows": rows_of(rows),
        "total": table.height,
        "truncated": table.height > rows.height,
        "days": [] if asked.report == "way" else rows_of(told(made.totals, TOTALS)),
    }
    return HttpResponse(orjson.dumps(document), content_type="application/json")


def _csv(asked: ReportQuestion, table: pl.DataFrame) -> HttpResponse:
    if table.height > settings.REPORT_CSV_ROWS:
        rule = gettext(
            "a CSV file may have at most %(report_csv_rows)s rows: choose a shorter time or a smaller area"
        ) % {"report_csv_rows": thousands(settings.REPORT_CSV_ROWS)}
        raise Refused("fields", gettext("%(rule)s; got %(height)s") % {"rule": rule, "height": thousands(table.height)})
    return csv_response(in_text(table), f"{asked.stream.name}-{asked.report}")


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)

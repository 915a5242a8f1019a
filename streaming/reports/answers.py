"""Reports as they are sent, as JSON or CSV; a child process makes them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from streaming.csv_text import csv_text
from streaming.history.reader import History
from streaming.language import thousands
from streaming.reports.errors import InvalidReport
from streaming.reports.fixes import ReportLimits, read_fixes
from streaming.reports.report import Report, ReportTerms
from streaming.reports.tables import TOTALS, counts_of, in_text, rows_of, table_of, told
from streaming.spaces import Space


@dataclass(frozen=True)
class ReportRequest:
    """A question for a report that was checked against the database.

    Parameters
    ----------
    stream : str
    space : Space
        Of the stream.
    terms : ReportTerms
    report : str
        One of `tables.COLUMNS`.
    format : {"json", "csv"}
    key : str or None
        The only object to read.
    """

    stream: str
    space: Space
    terms: ReportTerms
    report: str
    format: str
    key: str | None


def made(asked: ReportRequest, history: Path, limits: ReportLimits, rows: int, csv_rows: int) -> bytes:
    """Return a report as JSON, with `rows` rows at most, or as CSV.

    Raises
    ------
    InvalidReport
        When there are more elements than a limit allows, or more than `csv_rows` rows in a CSV file.
    """
    terms = asked.terms
    area = None if asked.key else terms.area  # the way of an object also where it never came near the area
    fixes = read_fixes(History(history, asked.space), asked.stream, terms.span, area, limits, asked.key)
    report = Report(fixes, terms)
    table = table_of(report, asked.report)
    if asked.format == "csv":
        if table.height > csv_rows:
            rule = InvalidReport(
                "a CSV file may have at most %(report_csv_rows)s rows: choose a shorter time or a smaller area",
                report_csv_rows=thousands(csv_rows),
            )
            raise InvalidReport("%(rule)s; got %(height)s", rule=rule, height=thousands(table.height))
        return csv_text(in_text(table)).encode()
    shown = table.head(rows)
    document = {
        "stream": asked.stream,
        "report": asked.report,
        "terms": _terms(terms),
        "counts": counts_of(fixes, report),
        "rows": rows_of(shown),
        "total": table.height,
        "truncated": table.height > shown.height,
        "days": [] if asked.report == "way" else rows_of(told(report.totals, TOTALS)),
    }
    return orjson.dumps(document)


def _terms(terms: ReportTerms) -> dict[str, Any]:
    return {
        "from_us": terms.span[0],
        "to_us": terms.span[1],
        "zone": terms.zone.key,
        "gap_s": terms.gap_us / 1e6,
        "fastest_mps": terms.fastest_mps,
        "stop_m": terms.stop_radius_m,
        "stop_s": terms.stop_us / 1e6,
        "bounds": terms.area and terms.area.bounds,
    }

"""The one writer of the CSV that leaves the server: RFC 4180, without a cell that a spreadsheet runs."""

import re

import polars as pl

CSV_TYPE = "text/csv; charset=utf-8"
# A spreadsheet runs a cell as a formula if it begins so, also behind white space or quotes, and in full width.
_AHEAD = "[\\x00-\\x20\x85\\s\ufeff\"']*"
_SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20"
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# Spreadsheets of many languages separate cells at semicolons, whatever the quotes say, and others at tabs and lines.
_CELLS = re.compile(r"([;\t\r\n])")
_FORMULA = re.compile(rf"{_AHEAD}[{_SIGNS}]")
# OWASP has tabs and ends of lines at the beginning of a cell among what is dangerous.
_FIRST = re.compile(rf"{_AHEAD}[{_SIGNS}\t\r\n]")
# All that `guarded` may change, in the expressions of polars.
_SUSPECT = rf"(?:^|[;\t\r\n]){_AHEAD}[{_SIGNS}\t\r\n]"


def guarded(text: str) -> str:
    """Return a text with an apostrophe before each place where a spreadsheet would begin a formula.

    A text that is a number stays as it is. If the apostrophe is taken away from each cell that has it before such a
    place, the text is as it was.

    References
    ----------
    .. [1] OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection

    Examples
    --------
    >>> [guarded(text) for text in ("=1+1", " @SUM(A1)", "-2.5", "a;=1+1", "a-b")]
    ["'=1+1", "' @SUM(A1)", '-2.5', "a;'=1+1", 'a-b']
    """
    begun = "'" if _FIRST.match(text) and not _NUMBER.fullmatch(text) else ""
    first, *others = _CELLS.split(text)
    return begun + first + "".join(f"'{part}" if _runs(part) else part for part in others)


def _runs(part: str) -> bool:
    return _FORMULA.match(part) is not None and not _NUMBER.fullmatch(part)


def csv_text(table: pl.DataFrame) -> str:
    """Return a table as CSV with a row of names, in which names and texts are `guarded`."""
    others = [name for name, kind in table.schema.items() if not (kind.is_numeric() or kind == pl.Boolean)]
    texts = table.with_columns(pl.col(others).cast(pl.String))
    safe = texts.with_columns(_guarded_column(texts[name]) for name in others)
    return safe.rename(guarded).write_csv(line_terminator="\r\n")


def _guarded_column(column: pl.Series) -> pl.Series:
    suspect = column.filter(column.str.contains(_SUSPECT)).unique().to_list()
    return column.replace(suspect, [guarded(text) for text in suspect])

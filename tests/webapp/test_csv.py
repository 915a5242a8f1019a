"""CSV that leaves the server: no cell of it is a formula, every text can be read back, and there is one writer."""

import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.csv_text import csv_text, guarded

ROOT = Path(__file__).parents[2]
CASES = json.loads((ROOT / "tests" / "csv_cells.json").read_text())
# What a spreadsheet may skip before a formula, what begins one, what separates cells, and what does none of it.
TEXTS = st.text(st.sampled_from(" \t\r\n\0\x1f\x85\u00a0\ufeff\"';,=+-@＝＋－＠15.e|aä"), max_size=8)
SKIPPED = "".join(chr(code) for code in range(33)) + "\x85\u00a0\ufeff\"'"


def is_number(text):
    return re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text) is not None


def is_formula(cell):
    """Whether the first sign that a spreadsheet does not skip begins a formula."""
    return cell.lstrip(SKIPPED.replace("'", ""))[:1] in tuple("=+-@＝＋－＠") and not is_number(cell)


def original(cell):
    """Take the apostrophes away that `guarded` adds."""
    first, *others = re.split(r"([;\t\r\n])", cell)
    lead, signs = f"'[{re.escape(SKIPPED)}]*", "=+\\-@＝＋－＠"
    others = [part[1:] if re.match(f"{lead}[{signs}]", part) else part for part in others]
    return (first[1:] if re.match(f"{lead}[{signs}\t\r\n]", cell) else first) + "".join(others)


def read(text, delimiter=","):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize(("text", "told"), CASES)
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe_and_others_stay(text, told):
    assert guarded(text) == told and original(told) == text


@given(st.lists(TEXTS, min_size=1, max_size=4, unique=True), st.data())
def test_headings_and_texts_are_read_back_and_no_cell_is_a_formula_whatever_separates_cells(names, data):
    rows = data.draw(st.lists(st.lists(TEXTS, min_size=len(names), max_size=len(names)), max_size=4))
    written = csv_text(pl.DataFrame(rows, dict.fromkeys(names, pl.String), orient="row"))
    cells = read(written)
    assert [[original(cell) for cell in row] for row in cells if row] == [names, *rows] or len(names) == 1
    assert not [cell for row in cells for cell in row if is_formula(cell)]
    for separated in (read(written, ";"), read(written, "\t")):
        assert not [cell for row in separated for cell in row[1:] if is_formula(cell)]


def test_negative_numbers_stay_numbers_and_a_missing_value_is_empty():
    table = pl.DataFrame({"lon": [-24.5, None], "n": [-3, 4], "inside": [True, False], "text": ["-7", None]})
    assert read(csv_text(table)) == [
        ["lon", "n", "inside", "text"],
        ["-24.5", "-3", "true", "-7"],
        ["", "4", "false", ""],
    ]


SAMPLE = Path("streaming/gateway/samples.py")  # the recording of the demonstration, which stays in the state folder
WRITERS = {Path("streaming/csv_text.py"), Path("static/js/csv.js")}
# Who joins by commas what is no row of a file: addresses, messages, options of programs.
OTHERS = {
    *("static/js/url-state.js", "static/js/report/questions.js", "static/js/replay/api.js", "webapp/live/programs.py"),
    *("streaming/decoders/csv_columns.py", "streaming/plans/together.py", "webapp/hub/encoding.py"),
}
SOURCES = [
    path.relative_to(ROOT)
    for folder in ("webapp", "streaming", "static/js")
    for path in (ROOT / folder).rglob("*.*")
    if path.suffix in {".py", ".js"}
]
WRITES = re.compile(r"csv\.writer|DictWriter|write_csv|to_csv|text/csv")
JOINS = re.compile(r"""["'`],["'`]\.join\(|\.join\(["'`],["'`]\)""")


def writes_csv(path, text):
    """Return what in a file makes CSV."""
    return WRITES.findall(text) + ([] if path.as_posix() in OTHERS else JOINS.findall(text))


def test_one_module_of_the_server_and_one_of_the_page_write_csv():
    found = {path for path in SOURCES if writes_csv(path, (ROOT / path).read_text())}
    assert found == WRITERS | {SAMPLE}, "streaming.csv_text.csv_text, static/js/csv.js"


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("csv.writer(file)", 1),
        ('HttpResponse(text, content_type="text/csv")', 1),
        ("lines.push(cells.join(','))", 1),
        ('",".join(cells)', 1),
        ('", ".join(names)', 0),
    ],
)
def test_the_gate_sees_who_writes_csv(text, n):
    assert len(writes_csv(Path("a.py"), text)) == n

"""A table of sorted runs says what a dictionary says, however its versions are merged, written and read."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.servers import sorted_runs
from streaming.servers.sorted_runs import Run, SortedRuns
from tests.draws import examples

LIKE = {"value": np.empty(0, dtype=np.int64), "boxes": np.empty((0, 4)), "text": pa.array([], pa.string())}
NONE = np.empty(0, dtype=np.int64)
KEYS = st.integers(-20, 20)
# Rows by key (a key may have several), and keys that are removed.
UPDATES = st.tuples(
    st.dictionaries(KEYS, st.lists(st.integers(0, 9), min_size=1, max_size=3), max_size=12), st.sets(KEYS)
)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Merge and cut tables of a few rows as those of millions."""
    for name, rows in {"LEAST_SWEPT": 4, "LEAST_CHUNK": 3, "CHUNKS": 4, "MOST_TIERED": 16}.items():
        monkeypatch.setattr(sorted_runs, name, rows)


def columns(values):
    values = np.array(values, dtype=np.int64)
    boxes = np.repeat(values[:, None], 4, axis=1).astype(float)
    return {"value": values, "boxes": boxes, "text": pa.array([f"text {value}" for value in values], pa.string())}


def put(table, rows, removed, truth):
    """Apply an update to a table and to a dictionary; a removed key may be among the rows."""
    keys = sorted(rows)
    key = np.array([key for key in keys for _ in rows[key]], dtype=np.int64)
    before = len(truth)
    truth.update(rows)
    for gone in removed:
        truth.pop(gone, None)
    gone = np.array(sorted(removed), dtype=np.int64)
    return table.put(key, columns([value for key in keys for value in rows[key]]), gone, len(truth) - before)


def contents(table, part, row):
    """Return rows as a dictionary, and check that the columns agree."""
    found, taken = {}, table.take(part, row)
    assert (taken["boxes"] == taken["value"][:, None]).all()
    assert taken["text"].to_pylist() == [f"text {value}" for value in taken["value"]]
    for key, value in zip(table.keys(part, row).tolist(), taken["value"].tolist(), strict=True):
        found.setdefault(key, []).append(value)
    return found


def check(table, truth):
    assert contents(table, *table.whole()) == truth and len(table) == len(truth)
    wanted = np.arange(-21, 22)
    part, row = table.find(wanted)
    assert [key in truth for key in wanted.tolist()] == (part >= 0).tolist()
    known = part >= 0
    first = table.take(part[known], row[known])["value"].tolist()
    assert first == [truth[key][0] for key in wanted[known].tolist()]
    assert contents(table, *table.rows(wanted)) == truth
    even = table.select(lambda run: run.columns["value"] % 2 == 0)
    assert contents(table, *even) == {
        key: chosen for key, values in truth.items() if (chosen := [value for value in values if value % 2 == 0])
    }
    check_structure(table)


def check_structure(table):
    """The chunks of the base follow each other by key, and every run has a number of its own."""
    assert all(len(chunk.key) and not len(chunk.removed) for chunk in table.base)
    keys = np.concatenate([NONE, *(chunk.key for chunk in table.base)])
    assert (keys[1:] >= keys[:-1]).all()
    assert all(a.key[-1] < b.key[0] for a, b in zip(table.base, table.base[1:], strict=False))
    numbers = [run.number for run in table.parts]
    assert len(set(numbers)) == len(numbers) and all(number < table.following for number in numbers)


def reread(table, files):
    """Return a table as it is read from what is written of it; a run is written once, and never differs later."""
    for run in table.parts:
        tables = run.tables()
        if run.number in files:
            assert all(old.equals(new) for old, new in zip(files[run.number], tables, strict=True))
        files[run.number] = tables
    return SortedRuns.of_head(LIKE, table.head(), lambda number: Run.of_tables(number, files[number]))


@pytest.mark.long
@examples(150)
@given(st.lists(st.tuples(UPDATES, st.booleans()), max_size=40))
def test_a_table_says_what_a_dictionary_says_whatever_is_merged_and_read_back(history):
    table, truth, files = SortedRuns(LIKE), {}, {}
    same = table
    for (rows, removed), restarted in history:
        before, known = table, contents(table, *table.whole())
        table = put(table, rows, removed, truth).settled()
        check(table, truth)
        assert contents(before, *before.whole()) == known  # an older version stays as it was
        # What was read back goes on exactly as what was never written.
        same = put(same, rows, removed, dict(known)).settled()
        assert same.head() == table.head()
        read = reread(table, files)
        if restarted:
            table = read
    check(table, truth)


@examples(100)
@given(st.lists(UPDATES, max_size=30), st.sets(st.integers(0, 30)))
def test_where_a_history_is_cut_into_batches_makes_no_difference(history, cuts):
    tables = [SortedRuns(LIKE), SortedRuns(LIKE)]
    truths = [{}, {}]
    for step, (rows, removed) in enumerate(history):
        tables = [put(table, rows, removed, truth) for table, truth in zip(tables, truths, strict=True)]
        tables[0] = tables[0].settled()
        if step in cuts:
            tables[1] = tables[1].settled()
    for table in tables:
        check(table, truths[0])


@examples(100)
@given(st.lists(UPDATES, max_size=20), st.integers(0, 3))
def test_a_column_gets_one_value_in_all_rows(history, value):
    table, truth = SortedRuns({"value": LIKE["value"]}), {}
    for rows, removed in history:
        table = put(table, rows, removed, truth).settled()
    numbers = {run.number for run in table.parts}
    table = table.with_column("value", value)
    part, row = table.whole()
    assert (table.take(part, row)["value"] == value).all() and not numbers & {run.number for run in table.parts}


@examples(100)
@given(st.lists(UPDATES, max_size=20), st.sets(KEYS), st.booleans())
def test_the_newest_run_may_remove_more(history, leaving, newest):
    table, truth = SortedRuns(LIKE), {}
    for rows, removed in history:
        table = put(table, rows, removed, truth).settled()
    table = put(table, {0: [1]}, set(), truth)
    known = sorted(leaving & truth.keys())
    table = table.without(np.array(known, dtype=np.int64), newest)
    for key in known:
        del truth[key]
    check(table, truth)
    check(table.settled(), truth)


@examples(100)
@given(st.lists(UPDATES, max_size=20), UPDATES)
def test_some_of_the_rows_are_a_table_of_their_own(history, later):
    table, truth = SortedRuns(LIKE), {}
    for rows, removed in history:
        table = put(table, rows, removed, truth).settled()
    some = table.some(*table.select(lambda run: run.key % 3 == 0), following=7)
    chosen = {key: values for key, values in truth.items() if key % 3 == 0}
    assert all(run.number >= 7 for run in some.parts)
    check(some, chosen)
    rest = put(table, {}, set(chosen), dict(truth))
    check(rest.joined(table.some(*table.select(lambda run: run.key % 3 == 0), rest.following)), truth)
    check(put(some, *later, chosen).settled(), chosen)


def test_the_rows_written_follow_the_updates(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(1)
    keys = np.sort(rng.choice(1 << 40, 200_000, replace=False))
    table = SortedRuns({"value": LIKE["value"]}).put(keys, {"value": keys}, NONE, len(keys))
    updates, batches, written, known, most = 1_000, 400, 0, set(), 0
    for batch in range(batches):
        chosen = np.sort(rng.choice(keys, updates, replace=False))
        table = table.put(chosen, {"value": chosen + batch}, NONE).settled()
        new = {run.number: len(run) for run in table.parts if run.number not in known}
        known |= new.keys()
        if batch >= 100:  # when the first batch, in which all objects came, has been merged
            written, most = written + sum(new.values()), max(most, sum(new.values()))
    assert written < 9 * updates * (batches - 100)
    assert most < len(keys) / 2
    assert len(table.runs) < 40 and len(table.base) < 50

"""What a run of the tests prints of the time that they took."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.house.durations import LONG_S, by_room, kept, slower, unmarked
from tests.house.nested import run_pytest

ROOT = Path(__file__).parents[2]
XML = """<testsuites><testsuite>
<testcase classname="tests.servers.test_joins" name="test_a" time="1.5"/>
<testcase classname="tests.servers.test_joins" name="test_b[1]" time="2"/>
<testcase classname="tests.browser.test_page" name="test_c" time="4"><failure/></testcase>
</testsuite></testsuites>"""


def _report(name, duration, when="call", *marks):
    return SimpleNamespace(nodeid=name, duration=duration, when=when, keywords=dict.fromkeys(marks, 1))


def test_what_took_long_and_is_not_marked_is_found_longest_first():
    """Marked tests, set-ups, and what is no report of a test are not."""
    reports = [
        _report("quick", LONG_S),
        _report("slow", LONG_S + 1),
        _report("slower", LONG_S + 2),
        _report("marked", LONG_S + 3, "call", "long"),
        _report("sets up", LONG_S + 4, "setup"),
        SimpleNamespace(message="a warning"),
    ]
    assert unmarked(reports) == [(LONG_S + 2, "slower"), (LONG_S + 1, "slow")]


def test_a_kept_run_is_read_and_added_up_by_room(tmp_path):
    path = tmp_path / "run.xml"
    assert kept(path) == {}
    path.write_text(XML)
    found = kept(path)
    assert found["tests.servers.test_joins.test_b[1]"] == 2
    assert by_room(found) == {"tests/browser": 4, "tests/servers": 3.5}
    path.write_text(XML[:99])
    assert kept(path) == {}


@pytest.mark.parametrize(
    ("before", "now", "share", "names"),
    [
        ({}, {"new": 60.0}, 0.0, []),
        ({"a": 10.0, "gone": 30.0}, {"a": 11.9, "new": 60.0}, 0.19, []),
        ({"a": 10.0, "b": 1.0}, {"a": 12.5, "b": 4.0}, 0.5, ["b", "a"]),
        ({"a": 10.0, "b": 1.0, "c": 0.1}, {"a": 10.0, "b": 4.0, "c": 0.5}, 0.306, ["b"]),
    ],
)
def test_a_run_that_is_slower_than_the_last_says_which_tests_made_it_so(before, now, share, names):
    found, tests = slower(before, now)
    assert found == pytest.approx(share, abs=0.001)
    assert [name for name, _, _ in tests] == names


def test_what_has_passed_is_left_out_of_the_next_run(tmp_path):
    (tmp_path / "test_few.py").write_text(
        "def test_a(): pass\ndef test_b(): assert not list(__import__('pathlib').Path().glob('x*'))\n"
    )
    (tmp_path / "x").touch()

    def run(*options):
        command = ["-p", "tests.house.durations", "-c", os.devnull, "--rootdir", tmp_path, "-q", "--junitxml=x.xml"]
        only = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return run_pytest(*command, *options, "test_few.py", folder=tmp_path, **only).stdout

    first = run()
    assert "1 failed, 1 passed" in first
    assert first.index("FAILED test_few.py::test_b: AssertionError") < first.index("= FAILURES =")
    assert (tmp_path / "x.passed").read_text() == "test_few.py::test_a\n"
    told = run("--without=x.passed")
    assert "1 failed, 1 deselected" in told

"""Tests that took long and are not marked are told at the end of a run."""

from types import SimpleNamespace

from tests.house.long_tests import LONG_S, unmarked


def _report(name, duration, when="call", *marks):
    return SimpleNamespace(nodeid=name, duration=duration, when=when, keywords=dict.fromkeys(marks, 1))


def test_what_took_long_is_told_longest_first():
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

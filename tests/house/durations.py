"""A pytest plugin that keeps how long each test of a run took, and compares the run with the one before.

A run with ``--junitxml=build/durations/NAME.xml`` is kept there, and compared with what stood there. At its end, the
plugin prints the slowest tests, the total of each room (the folders of ``tests``), and, if the tests that both runs had
took much longer than before, which of them did. Any run prints which tests took long and are not marked ``long``.

A test that fails is named at once, since a run with workers prints why only at its end.

The names of the tests that passed are kept beside it, in ``NAME.passed``. A later run of the same commit leaves them
out with ``--without=build/durations/NAME.passed``, so that the continuous integration runs none twice.
"""

from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

# What takes more than so many seconds is left out of `make test`, unless with ALL=1.
LONG_S = 3.0
# How many of the slowest tests a run prints.
SLOWEST = 20
# How much slower a run is that says so, and each test that it names; those also by so many seconds.
SLOWER, SLOWER_S = 0.2, 0.5

_before = pytest.StashKey[dict[str, float]]()


def kept(path: Path) -> dict[str, float]:
    """Return the seconds of each test of a run that was kept; a run that cannot be read has none.

    Parameters
    ----------
    path : Path
        A file in the form of JUnit.
    """
    try:
        cases = ElementTree.parse(path).iter("testcase")
        return {f"{case.get('classname')}.{case.get('name')}": float(case.get("time", 0)) for case in cases}
    except (OSError, ElementTree.ParseError):
        return {}


def by_room(seconds: dict[str, float]) -> dict[str, float]:
    """Return the total of each room, the greatest first: the first two names of a test's module."""
    total: defaultdict[str, float] = defaultdict(float)
    for name, took in seconds.items():
        total["/".join(name.split(".")[:2])] += took
    return dict(sorted(total.items(), key=lambda room: -room[1]))


def slower(before: dict[str, float], now: dict[str, float]) -> tuple[float, list[tuple[str, float, float]]]:
    """Compare two runs by the tests that both had.

    Returns
    -------
    share : float
        How much longer the run took than the one before: 0.2 for a fifth.
    tests : list of tuple
        Name, seconds before, and seconds now of the tests that took longer, what they add most first; none unless the
        whole run took longer.
    """
    both = before.keys() & now.keys()
    was = sum(before[name] for name in both)
    share = sum(now[name] for name in both) / was - 1 if was else 0.0
    if share <= SLOWER:
        return share, []
    grown = ((name, before[name], now[name]) for name in both)
    found = [one for one in grown if one[2] > max(one[1] * (1 + SLOWER), one[1] + SLOWER_S)]
    return share, sorted(found, key=lambda one: one[1] - one[2])


def unmarked(reports) -> list[tuple[float, str]]:
    """Return the tests in the reports of a run that took long and are not marked, with their seconds, longest first.

    What a test shares with others, such as the start of servers, does not count.
    """
    calls = (report for report in reports if getattr(report, "when", "") == "call")
    found = ((report.duration, report.nodeid) for report in calls if "long" not in report.keywords)
    return sorted((one for one in found if one[0] > LONG_S), reverse=True)


def pytest_addoption(parser):
    """Add the option that leaves out what has passed."""
    parser.addoption("--without", metavar="FILE", help="leave out the tests whose names are in a file")


def pytest_collection_modifyitems(config, items):
    """Leave out what has passed."""
    if config.option.without:
        names = set((config.rootpath / config.option.without).read_text().splitlines())
        left_out = [item for item in items if item.nodeid in names]
        items[:] = [item for item in items if item.nodeid not in names]
        config.hook.pytest_deselected(items=left_out)


class Failures:
    """Prints the name of a test that fails, and the first line of why, when it fails."""

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        if report.failed and (terminal := self.config.pluginmanager.get_plugin("terminalreporter")):
            crash = getattr(report.longrepr, "reprcrash", None)
            why = crash.message.partition("\n")[0] if crash else report.when
            terminal.ensure_newline()
            terminal.write_line(f"FAILED {report.nodeid}: {why}", red=True)


def pytest_configure(config):
    """Read the run before, whose file this one replaces."""
    path = config.option.xmlpath
    config.stash[_before] = kept(Path(path)) if path else {}
    config.pluginmanager.register(Failures(config))


def pytest_terminal_summary(terminalreporter, config):
    """Print what took long; junitxml has written its file by now."""
    reports = (report for found in terminalreporter.stats.values() for report in found)
    _section(
        terminalreporter,
        f"took more than {LONG_S:g} s and is not marked long",
        [f"{seconds:.1f} s {name}" for seconds, name in unmarked(reports)],
    )
    if config.option.xmlpath:
        path = Path(config.option.xmlpath)
        now, passed = kept(path), terminalreporter.stats.get("passed", ())
        path.with_suffix(".passed").write_text("".join(f"{report.nodeid}\n" for report in passed))
        share, grown = slower(config.stash[_before], now)
        slowest = sorted(now.items(), key=lambda test: -test[1])[:SLOWEST]
        _section(terminalreporter, f"slowest {SLOWEST} tests", [f"{took:8.1f} s {name}" for name, took in slowest])
        rooms = [f"{took:8.1f} s {room}" for room, took in by_room(now).items()]
        _section(terminalreporter, f"{sum(now.values()):.0f} s of tests by room", rooms)
        found = [f"{was:8.1f} s -> {took:.1f} s {name}" for name, was, took in grown[:SLOWEST]]
        _section(terminalreporter, f"{share:.0%} slower than the run before, by", found)


def _section(terminalreporter, title, lines):
    if lines:
        terminalreporter.section(title)
    for line in lines:
        terminalreporter.line(line)

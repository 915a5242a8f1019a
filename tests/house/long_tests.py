"""Tell which tests took long and are not marked ``long``, at the end of a run."""

# What takes more than so many seconds is left out of `make check`, unless with ALL=1.
LONG_S = 10.0


def unmarked(reports) -> list[tuple[float, str]]:
    """Return the tests in the reports of a run that took long and are not marked, with their seconds, longest first.

    What a test shares with others, such as the start of servers, does not count.
    """
    calls = (report for report in reports if getattr(report, "when", "") == "call")
    told = ((report.duration, report.nodeid) for report in calls if "long" not in report.keywords)
    return sorted((one for one in told if one[0] > LONG_S), reverse=True)


def pytest_terminal_summary(terminalreporter):
    """Write a line for each such test."""
    found = unmarked(report for reports in terminalreporter.stats.values() for report in reports)
    if found:
        terminalreporter.section(f"took more than {LONG_S:g} s and is not marked long")
    for seconds, name in found:
        terminalreporter.line(f"{seconds:.1f} s {name}")

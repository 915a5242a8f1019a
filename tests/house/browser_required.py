"""A pytest plugin (``-p tests.house.browser_required``): skipping a browser test is a failure."""

import pytest


def pytest_collection_finish(session):
    """Refuse a run without any browser test."""
    if not any(item.get_closest_marker("browser") for item in session.items):
        raise pytest.UsageError("browser tests are required, but none was collected")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Turn the skip of a browser test into a failure."""
    report = yield
    if report.skipped and item.get_closest_marker("browser"):
        report.outcome = "failed"
        report.longrepr = f"browser tests are required, but this one was skipped: {call.excinfo.value}"
    return report

"""The fixture `live`."""

import pytest

from tests.live.stack import Stack


@pytest.fixture(scope="session")
def live(tmp_path_factory, collector):
    """Run the Lookout that tests share, without the demonstration; it must leave nothing behind."""
    stack = Stack(tmp_path_factory.mktemp("live"), standby=True)
    stack.environment |= collector.environment
    try:
        stack.start()
    except BaseException:
        stack.leave_nothing()
        raise
    yield stack
    stack.end()

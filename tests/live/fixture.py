"""The fixture `live`."""

import pytest

from tests.live.stack import Stack


@pytest.fixture(scope="session")
def live(tmp_path_factory, collector):
    """Run the whole of Lookout, without the demonstration's streams; it leaves nothing behind."""
    stack = Stack(tmp_path_factory.mktemp("live"), standby=True)
    stack.environment |= collector.environment
    try:
        stack.start()
        yield stack
    finally:
        stack.end()

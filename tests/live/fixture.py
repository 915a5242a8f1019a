"""The fixture `live`."""

import pytest

from tests.house.sharing import SHARED
from tests.live.stack import Stack

_running = pytest.StashKey[Stack]()


@pytest.fixture
def live(request, tmp_path_factory, collector):
    """Return a running Lookout, without the demonstration's streams, that tests one after the other share."""
    stash = request.config.stash
    if _running not in stash:
        stack = Stack(tmp_path_factory.mktemp("live"), standby=True)
        stack.environment |= collector.environment
        try:
            stack.start()
        except BaseException:
            stack.leave_nothing()
            raise
        stash[_running] = stack
    return stash[_running]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """End Lookout behind the tests that share it: it costs processor time even if it has nothing to do.

    It must leave nothing behind.
    """
    stash = item.config.stash
    if _running in stash and not (nextitem and nextitem.nodeid.startswith(SHARED)):
        stack = stash[_running]
        del stash[_running]
        stack.end()

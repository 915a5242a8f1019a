"""The whole of Lookout answers a user."""

import urllib.request

import pytest

from bench.live import PATIENCE_S

pytestmark = pytest.mark.spark


async def test_a_user_logs_in_and_every_program_runs(live):
    assert {"engine", "java", "gateway", "web", "worker", "beat", "redis"} <= set(live.pids())
    async with live.monitor("ann") as monitor:
        assert (monitor.hello["user"], monitor.hello["streams"]) == ("ann", [])
        await monitor.until(lambda: monitor.engine.get("alive"), "a living engine")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(live.login_link("ann"), timeout=PATIENCE_S) as page:
        assert page.geturl() == f"{live.base_url}/"

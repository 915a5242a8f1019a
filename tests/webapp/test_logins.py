"""Log-ins and tokens: who guesses waits, nobody else does, and no secret comes into a log."""

import logging
from io import StringIO

import aiohttp
import pytest

from tests.webapp.site import Site
from webapp.logs import hide_secrets


@pytest.fixture(scope="module")
def site(tmp_path_factory, redis_server):
    """Run a web server with the hashing of passwords that users get."""
    with Site(tmp_path_factory.mktemp("site"), redis_server) as running:
        yield running


@pytest.fixture
def log():
    """Return what a program that logs has printed."""
    hide_secrets()
    printed = StringIO()
    handler = logging.StreamHandler(printed)
    logger = logging.getLogger("tests.secrets")
    logger.addHandler(handler)
    yield logger, printed
    logger.removeHandler(handler)


async def test_tokens_come_into_no_log(site):
    socket = f"{site.place.address}/ws/monitor/"
    async with aiohttp.ClientSession() as browser:
        for query in (f"?token={site.token}", f"?%74oken={site.token}", f"?a=b&token={site.token}"):
            async with browser.ws_connect(socket + query) as connection:
                assert (await connection.receive_json())["type"] == "hello"
        async with browser.get(f"{site.place.address}/login/once/{site.token}/") as page:
            assert page.status == 410
    words = site.log.read_text()
    assert words.count("/ws/monitor/") >= 3
    assert site.token not in words


def test_a_secret_in_an_exception_is_hidden(log):
    logger, printed = log
    try:
        raise ValueError("no answer from redis://:hunter2@127.0.0.1:5000/0 to /ws/monitor/?token=hunter3")
    except ValueError as error:
        logger.exception("failed: %s", error)
    assert "no answer from redis" in printed.getvalue()
    assert "hunter" not in printed.getvalue()

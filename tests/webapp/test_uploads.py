"""A request that is too large is refused before anything is kept of it."""

import json

import pytest
from asgiref.testing import ApplicationCommunicator

from webapp.pages.uploads import FORM_BYTES, most_bytes

pytestmark = pytest.mark.django_db(transaction=True)
SCOPE = {"type": "http", "method": "POST", "query_string": b"", "http_version": "1.1", "scheme": "http"}


async def refused(path, headers, chunks):
    """Send a request until it is answered; return the status, the error, and the number of chunks that were sent."""
    from webapp.asgi import application

    browser = ApplicationCommunicator(application, SCOPE | {"path": path, "headers": headers})
    for sent in range(chunks):  # noqa: B007
        await browser.send_input({"type": "http.request", "body": bytes(1 << 20), "more_body": True})
        if not await browser.receive_nothing(timeout=0.01):
            break
    start, body = await browser.receive_output(), await browser.receive_output()
    return start["status"], json.loads(body["body"])["error"], sent


async def test_an_upload_that_says_that_it_is_too_large_is_refused_at_once(project):
    length = str(project.LAYER_UPLOAD_BYTES + FORM_BYTES + 1).encode()
    status, error, sent = await refused("/layers/", [(b"content-length", length)], 1)
    assert (status, sent) == (413, 0)
    assert "a request may have at most 1,074,790,400 bytes; got 1,074,790,401" in error


@pytest.mark.parametrize("path", ["/layers/", "/admin/webapp/layer/add/", "/admin/webapp/layer/1/change/", "/login/"])
async def test_an_upload_that_does_not_say_how_large_it_is_is_refused_when_it_is_too_large(project, path):
    project.LAYER_UPLOAD_BYTES = project.MAX_REQUEST_BYTES = 3 << 20
    status, error, sent = await refused(path, [(b"transfer-encoding", b"chunked")], 20)
    assert status == 413
    assert sent <= 5
    assert error == f"a request may have at most {most_bytes(path):,} bytes; got more"

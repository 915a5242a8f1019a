"""The page of a user's alarms, and notifications in browsers of users without rights in the admin."""

import json

import pytest
from django.test import Client

from tests.webapp.alarms import changed, query_of, subscribed, webhook
from tests.webapp.test_channels import Browser, PushService
from webapp.delivery import outbox
from webapp.delivery.channels.push import vapid
from webapp.delivery.sending import deliver_due
from webapp.models import Channel, Delivery, Membership, Subscription, Team
from webapp.pages.alarms import MOST_BROWSERS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def quiet(monkeypatch, settings, tmp_path):
    monkeypatch.setattr(outbox, "_wake", lambda: None)
    settings.HOME = tmp_path
    vapid.cache_clear()
    yield
    vapid.cache_clear()


@pytest.fixture
def service():
    with PushService() as made:
        yield made


def client_of(user):
    client = Client()
    client.force_login(user)
    return client


def ask(user, path, **document):
    """Post a document as a user; return status and answer."""
    address = f"/alarms/browser{path}"
    response = client_of(user).post(address, json.dumps(document), content_type="application/json")
    return response.status_code, response.json()


def test_a_browser_gets_the_alarms_of_its_user_and_no_others(user, other, service):
    browser = Browser(f"{service.url}/abc")
    told = json.loads(browser.subscription)
    assert ask(user, "", subscription=told, severity="critical") == (200, {"severity": "critical"})
    assert ask(user, "", subscription=told, severity="info") == (200, {"severity": "info"})  # a change of mind
    assert (Channel.objects.count(), Subscription.objects.count()) == (1, 1)
    assert ask(user, "/known", endpoint=told["endpoint"]) == (200, {"severity": "info"})
    assert ask(other, "/known", endpoint=told["endpoint"]) == (200, {"severity": None})
    changed(query_of(user), prefix="own")
    changed(query_of(other), prefix="private")
    assert deliver_due() == 1
    assert "own-0" in browser.read(service.requests[0][1])["title"]
    assert ask(other, "/forget", endpoint=told["endpoint"])[0] == 200
    assert Channel.objects.count() == 1
    assert ask(user, "/forget", endpoint=told["endpoint"]) == (200, {"severity": None})
    assert not Channel.objects.exists() and not Delivery.objects.exists()


def test_a_test_says_what_happened_but_shows_no_answer_of_a_server_to_users_without_rights(user, staff, service):
    told = json.loads(Browser(f"{service.url}/abc").subscription)
    assert ask(user, "/test", endpoint=told["endpoint"]) == (400, {"error": "this browser gets no alarms yet"})
    for somebody, words in (
        (user, "the push service refused it; status 500"),
        (staff, "got 500 Internal Server Error"),
    ):
        ask(somebody, "", subscription=told, severity="info")
        service.always = ""
        assert "accepted it after" in ask(somebody, "/test", endpoint=told["endpoint"])[1]["sent"]
        service.always = "refuse"
        assert words in ask(somebody, "/test", endpoint=told["endpoint"])[1]["error"]


@pytest.mark.parametrize(
    ("path", "document", "words"),
    [
        ("", {"severity": "info"}, "subscription must be an object with an endpoint"),
        ("", {"subscription": {"endpoint": "https://fcm.googleapis.com/x"}, "severity": "info"}, "endpoint and keys"),
        (
            "",
            {"subscription": {"endpoint": "x"}, "severity": "loud"},
            "severity must be one of info, warning",
        ),
        ("/forget", {}, "endpoint must be a text; got None"),
    ],
)
def test_requests_that_break_a_rule_are_refused_with_the_rule(user, path, document, words):
    status, answer = ask(user, path, **document)
    assert status == 400 and words in answer["error"]


def test_a_user_has_some_browsers_only(user, service):
    for number in range(MOST_BROWSERS + 1):
        told = json.loads(Browser(f"{service.url}/{number}").subscription)
        status, _ = ask(user, "", subscription=told, severity="info")
        assert status == (200 if number < MOST_BROWSERS else 400)


def test_the_page_shows_what_reaches_a_user_and_nothing_of_others(user, other):
    team = Team.objects.create(name="watch")
    Membership.objects.create(team=team, user=user)
    subscribed(user, webhook("https://a.example", "mine"))
    subscribed(team, webhook("https://a.example", "the watch's"))
    subscribed(other, webhook("https://a.example", "another's"))
    changed(query_of(other, "Private"), prefix="private")
    changed(query_of(user, "Shared", shared=True), prefix="shared")
    page = client_of(user).get("/alarms/").content.decode()
    for shown in ("mine", "the watch&#x27;s", "Shared: shared-0 opened"):
        assert shown in page
    assert "another" not in page and "private-0" not in page
    assert Client().get("/alarms/").status_code == 302

"""Alarms in a browser: the form of a channel in the admin, and the page that switches notifications on."""

import json

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import window
from tests.webapp.receiver import Receiver
from tests.webapp.test_channels import Browser, PushService

pytestmark = pytest.mark.browser

# A browser of a test reaches no push service: its subscription is given, and everything else is real.
STUB = """
  const told = %s;
  const subscription = {
    endpoint: told.endpoint,
    toJSON: () => told,
    unsubscribe: async () => localStorage.removeItem("subscribed"),
  };
  PushManager.prototype.subscribe = async function ({ applicationServerKey }) {
    localStorage.setItem("subscribed", applicationServerKey.length);
    return subscription;
  };
  PushManager.prototype.getSubscription = async () => (localStorage.getItem("subscribed") ? subscription : null);
  Notification.requestPermission = async () => "granted";
"""


@pytest.fixture
def page(chromium, site):
    context = window(chromium)
    context.grant_permissions(["notifications"], origin=site.place.address)
    made = context.new_page()
    made.goto(site.login_link())
    yield made
    context.close()


@pytest.mark.long
def test_the_form_of_a_channel_shows_the_options_of_its_kind_and_sends_a_test(page, site):
    with Receiver() as receiver:
        page.goto(f"{site.place.address}/admin/webapp/channel/add/")
        page.get_by_label("Kind:").select_option("webhook")
        expect(page.locator("#id_channel__email__to")).to_be_hidden()
        page.locator("#id_channel__webhook__url").fill("ftp://a")
        page.get_by_role("button", name="Send a test").click()
        expect(page.locator("#trial-answer")).to_contain_text("url must begin with http:// or https://")
        page.locator("#id_channel__webhook__url").fill(receiver.url)
        page.locator("#id_channel__webhook__token").fill("t0ken")
        page.get_by_role("button", name="Send a test").click()
        expect(page.locator("#trial-answer")).to_contain_text("The receiver accepted with status 200")
        assert receiver.requests[0][0]["Authorization"] == "Bearer t0ken"
        receiver.always = "refuse"
        page.get_by_role("button", name="Send a test").click()
        expect(page.locator("#trial-answer")).to_contain_text("must answer 2xx; got 500")


@pytest.mark.long
def test_a_user_is_notified_in_the_browser_and_stops_that(page, site):
    with PushService() as service:
        browser = Browser(f"{service.url}/abc")
        page.add_init_script(STUB % browser.subscription)
        page.goto(f"{site.place.address}/alarms/")
        state = page.locator("#browser-state")
        expect(state).to_have_text("This browser is not notified.")
        page.get_by_label("From severity").select_option("critical")
        page.get_by_role("button", name="Notify me here").click()
        expect(state).to_have_text("This browser is notified of incidents from severity critical on.")
        page.wait_for_function("localStorage.getItem('subscribed') === '65'")  # bytes of a public key
        page.get_by_role("button", name="Send a test").click()
        expect(state).to_contain_text("The push service accepted it")
        notice = browser.read(service.requests[0][1])
        assert notice["title"] == "[test] Lookout reaches you by notifications in this browser"
        assert _shown(page, site.place.address, notice) == [notice["title"]]
        page.reload()
        expect(state).to_have_text("This browser is notified of incidents from severity critical on.")
        expect(page.get_by_role("row", name="Browser")).to_contain_text("push")
        page.get_by_role("button", name="Stop").click()
        expect(state).to_have_text("This browser is not notified.")
        page.reload()
        expect(page.get_by_text("Nothing yet.")).to_be_visible()


def _shown(page, address, notice):
    """Give the service worker a message as a push service does; return the titles of what it shows."""
    session = page.context.new_cdp_session(page)
    registrations = []
    session.on("ServiceWorker.workerRegistrationUpdated", lambda told: registrations.extend(told["registrations"]))
    session.send("ServiceWorker.enable")
    page.wait_for_function("navigator.serviceWorker.getRegistrations().then((all) => all[0].active)")
    for _ in range(2):  # what comes twice is shown once
        number = registrations[0]["registrationId"]
        told = {"origin": address, "registrationId": number, "data": json.dumps(notice)}
        session.send("ServiceWorker.deliverPushMessage", told)
    shown = """navigator.serviceWorker.getRegistrations().then((all) => all[0].getNotifications())
        .then((notices) => notices.map((notice) => notice.title))"""
    page.wait_for_function(f"{shown}.then((titles) => titles.length)")
    return page.evaluate(shown)

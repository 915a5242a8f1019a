"""Of many queries the page lists a page, finds the others on the server, and subscribes to what it shows."""

import json

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.conftest import window
from tests.browser.screen import Screen
from tests.browser.test_accessibility import wrong

pytestmark = pytest.mark.browser
HERE, FAR, ELSEWHERE = (24.5, 59.7), (-150.0, -40.0), (100.0, 10.0)
NEAR, MANY = 20, 300


def plan(place):
    """Return the plan of a rectangle around a place."""
    lon, lat = place
    return {"stream": "ships", "compare": {"lo": [lon - 0.5, lat - 0.3], "hi": [lon + 0.5, lat + 0.3]}}


# Queries of another user around two places, and one of the user's own at a third.
MAKE_QUERIES = f"""
from django.contrib.auth import get_user_model
from webapp.models import Query, Stream
Stream(name="ships", title="Ships", icon="ship", transport="stdin", decoder="ais").save()
ann, bob = get_user_model().objects.get(username="ann"), get_user_model().objects.create_user("bob")
def row(owner, name, plan):
    about = {{"plan": plan, "stream": "ships", "status": "running", "acknowledged": 1}}
    return Query(owner=owner, name=name, shared=owner == bob, **about)
near = [row(bob, f"Near {{n}}", {plan(HERE)}) for n in range({NEAR})]
far = [row(bob, f"Far {{n}}", {plan(FAR)}) for n in range({NEAR}, {MANY})]
made = Query.objects.bulk_create([*near, *far, row(ann, "Mine", {plan(ELSEWHERE)})])
print([query.pk for query in made])
"""
SHARE_ONE_MORE = f"""
from django.contrib.auth import get_user_model
from webapp.queries.queries import register
print(register(get_user_model().objects.get(username="bob"), "Latecomer", {plan(FAR)}, shared=True).pk)
"""


class Subscribed:
    """The queries to which a page is subscribed, as it tells the server, and the most that they ever were."""

    def __init__(self, page):
        self.page, self.queries, self.most = page, set(), 0
        page.on("websocket", lambda socket: socket.on("framesent", self._sent))

    def _sent(self, frame):
        message = json.loads(frame)
        if message["type"] == "query.subscribe":
            self.queries.update(message["queries"])
        if message["type"] == "query.unsubscribe":
            self.queries.difference_update(message["queries"])
        self.most = max(self.most, len(self.queries))

    def now(self):
        """Return the queries to which the page is subscribed now; Playwright reads what was sent during its calls."""
        self.page.title()
        return self.queries

    def until(self, condition, what):
        """Wait until the queries fulfil a condition."""
        wait_for(lambda: condition(self.now()), lambda: f"{what}: {sorted(self.queries)}")


@pytest.fixture
def numbers(site, engine):
    """The numbers of the queries, which the engine runs: near ones, far ones, the user's own one."""
    made = json.loads(site.manage("shell", "--no-imports", "-c", MAKE_QUERIES).strip().splitlines()[-1])
    for i, number in enumerate(made):
        place = HERE if i < NEAR else FAR if i < MANY else ELSEWHERE
        engine.log.send("register", query=number, revision=1, plan=plan(place))
    return made


@pytest.fixture
def screen(chromium, site):
    """A window of the user of the site."""
    context = window(chromium)
    assert context.request.get(site.login_link(), max_redirects=0).status == 302
    screen = Screen(context.new_page(), site.place.address)
    yield screen
    context.close()
    assert screen.faults == []


@pytest.mark.long
def test_of_three_hundred_queries_only_what_is_shown_is_listed_and_subscribed(screen, site, engine, numbers):
    page, subscribed = screen.page, Subscribed(screen.page)
    near, far, mine = set(numbers[:NEAR]), numbers[NEAR:MANY], numbers[MANY]
    cards, total, more = page.locator(".query-card"), page.locator("#query-total"), page.locator("#query-more")
    engine.move({"anna": HERE, "berta": FAR})
    screen.look(8, *HERE)
    expect(page.locator("#query-count")).to_have_text("301")
    expect(total).to_have_text("100 of 301 queries")
    expect(cards).to_have_count(100)
    expect(cards.first.locator(".query-name")).to_have_text("Mine")
    screen.expect_query("Near 0", "running", "1")
    # Those on the map, those in the list's window, and the user's own.
    subscribed.until(lambda now: near <= now, "the queries on the map")
    assert subscribed.now() == {*near, mine}
    assert wrong(page, "#pane-queries") == []

    cards.nth(98).scroll_into_view_if_needed()
    screen.expect_query("Far 98", "running", "1")
    expect(screen.query("Far 60").locator(".query-count")).to_have_text("")
    subscribed.until(lambda now: len(now) < 50, "what was passed by ends")
    assert {*near, mine, far[98 - NEAR]} <= subscribed.now()
    # An event of the user's own query comes although its card is out of sight, and its rectangle off the map.
    engine.move({"anna": ELSEWHERE})
    expect(page.locator("#unread")).to_have_text(str(NEAR + 1))

    cards.first.scroll_into_view_if_needed()
    subscribed.until(lambda now: now == {*near, mine}, "the end of what is out of sight")

    more.scroll_into_view_if_needed()
    expect(more).to_have_text("Show 100 more")
    more.click()
    expect(cards).to_have_count(200)
    expect(total).to_have_text("200 of 301 queries")
    page.locator("#query-search").fill("far 250")
    expect(total).to_have_text("1 of 301 queries match")
    expect(cards).to_have_count(1)
    screen.expect_query("Far 250", "running", "1")
    assert far[250 - NEAR] in subscribed.now()
    site.manage("shell", "--no-imports", "-c", SHARE_ONE_MORE)
    expect(total).to_have_text("1 of 302 queries match")
    page.locator("#query-search").fill("nothing has this name")
    expect(total).to_have_text("0 of 302 queries match")
    expect(page.locator("#queries-empty")).to_be_hidden()
    page.locator("#query-search").fill("")
    expect(cards).to_have_count(200)
    subscribed.until(lambda now: far[250 - NEAR] not in now, "the end of what was found")
    assert subscribed.most < 80

    # What comes into view on the map is subscribed to, and what leaves it ends, but for the cards in view.
    screen.turn(8, *FAR)
    subscribed.until(lambda now: now >= {*far[:179], mine}, "the queries that came into view")
    subscribed.until(lambda now: len(now) < 200, "the end of those that went out of view")
    screen.expect_query("Far 150", "running", "1")
    page.locator(".swatch").nth(60).click()
    page.locator(".swatch").first.scroll_into_view_if_needed()
    subscribed.until(lambda now: numbers[59] not in now, "the end of one that is hidden, and out of sight of the list")

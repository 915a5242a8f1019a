"""What the page asks stored tables, and how it shows what they answer."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.browser.screen import expect_no_sideways, expect_room_for_a_finger
from tests.browser.test_layers import name as name
from tests.browser.test_layers import row as row_of
from tests.browser.test_layers import upload

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
BEGINNING = datetime(2026, 11, 21, 10, tzinfo=UTC)
TRACK = [(24.2, 59.6), (24.4, 59.7), (24.6, 59.65), (24.8, 59.75)]
PAST = (24.4, 59.7)


def row(key, minute, place, **more):
    """Return a row as the server tells it."""
    time = (BEGINNING + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    box = {"lo": [*place, None], "hi": [*place, None], "geometry": None}
    return {"key": key, "time": time, **box, "properties": {"name": f"MS {key.title()}", "speed_mps": 7.5}, **more}


class StoredTables:
    """Stands between the page and the server: says that a stream is stored, and answers questions to stored tables."""

    def __init__(self, page, stream):
        self.stream, self.questions = stream, []
        self.rows = [row("anna", i, place) for i, place in enumerate(TRACK)] + [row("berta", 1, (25.0, 59.8))]
        self.truncated, self.error = False, None
        page.route_web_socket("**/ws/monitor/?*", self._between)

    def _between(self, route):
        server = route.connect_to_server()
        server.on_message(lambda message: route.send(self._told(message)))
        route.on_message(lambda message: self._asked(json.loads(message), route, server))

    def _told(self, message):
        if isinstance(message, bytes) or json.loads(message)["type"] != "hello":
            return message
        hello = json.loads(message)
        for stream in hello["streams"]:
            stream |= {"stored": stream["name"] == self.stream, "retention_s": 86400}
        return json.dumps(hello)

    def _asked(self, message, route, server):
        if not message["type"].startswith("table."):
            return server.send(json.dumps(message))
        self.questions.append(message)
        reply = {"type": "table.rows", "rows": self.rows, "truncated": self.truncated}
        if self.error:
            reply = {"type": "error", "code": "table", "message": self.error}
        return route.send(json.dumps(reply | {"id": message["id"]}))

    @property
    def question(self):
        """The last question, without the number by which its answer finds back."""
        return {name: value for name, value in self.questions[-1].items() if name != "id"}


@pytest.mark.long
def test_where_a_ship_has_been_is_stored_and_shown(stored_feed, screen, name):
    screen.look(ZOOM, *MIDDLE)
    for place in TRACK:
        stored_feed.put(anna=place)
        assert screen.painted(place, "ship")
    screen.page.mouse.click(*screen.pixel(*TRACK[-1]))
    screen.page.get_by_role("button", name="Where was it?").click()
    expect(screen.page.locator("#history-summary")).to_have_text(re.compile("^4 rows of 1 key, .* UTC$"))
    expect(screen.page.locator("#history-rows tbody tr")).to_have_count(4)

    upload(screen, name)
    expect(row_of(screen, name)).to_have_attribute("data-status", "ready")
    screen.look(ZOOM, *MIDDLE)
    screen.page.keyboard.press("h")
    screen.page.locator("#history-form [name=table]").select_option(f"stored:{stored_feed.name}")
    screen.page.get_by_label("Pairs with another table").check()
    screen.page.locator("#history-form [name=partner]").select_option(f"layer:{name}")
    ask(screen)
    expect(screen.page.locator("#history-rows tbody tr")).to_have_count(1)
    expect(screen.page.locator("#history-rows tbody tr")).to_contain_text("The Square")
    screen.page.locator("#history-question summary").click()
    screen.page.get_by_label("Pairs with another table").uncheck()
    screen.page.locator("#history-form [name=table]").select_option(f"layer:{name}")
    expect(screen.page.locator("#history-span-field")).to_be_hidden()
    ask(screen)
    expect(screen.page.locator("#history-summary")).to_have_text("1 row of 1 key")


def ask(screen):
    screen.page.get_by_role("button", name="Search", exact=True).click()


def fill(screen, field, text):
    screen.page.locator(f"#history-form [name={field}]").fill(text)


@pytest.fixture
def stored(feed, screen):
    """A window at a stored stream with one ship, and the tables behind it."""
    tables = StoredTables(screen.page, feed.name)
    feed.put(anna=TRACK[-1])
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(TRACK[-1], "ship")
    return tables


def test_rows_of_the_view_and_a_span_are_listed_drawn_and_found(stored, screen):
    screen.page.keyboard.press("h")
    screen.page.locator("#history-form [name=span]").select_option("custom")
    fill(screen, "from", "2026-11-21T10:00:00")
    ask(screen)
    expect(screen.page.locator("#history-summary")).to_have_text(
        "5 rows of 2 keys, 2026-11-21 10:00:00 to 10:03:00 UTC"
    )
    expect(screen.page.locator("#history-truncated")).to_be_hidden()
    asked = stored.question
    assert asked.pop("box")["lo"][0] == pytest.approx(23.2, abs=0.5)
    span = {"from": "2026-11-21T10:00:00.000Z"}
    assert asked == {"type": "table.query", "table": {"stored": stored.stream}, "limit": 1000, "span": span}
    expect(screen.page.locator("tr[data-row='1']")).to_contain_text("10:01:00MS Anna (anna)MS Anna7.5 m/s")
    expect(screen.hover(PAST)).to_contain_text("2026-11-21 10:01:00 UTC")
    screen.page.mouse.click(*screen.pixel(*PAST))
    expect(screen.page.locator("tr[data-row='1']")).to_have_attribute("aria-selected", "true")
    screen.page.locator("tr[data-row='4'] button").click()
    expect(screen.page.locator("tr[data-row='4']")).to_have_attribute("aria-selected", "true")
    expect(screen.page).to_have_url(re.compile("/59[.]80"))
    screen.page.locator("#history-question summary").click()
    screen.page.get_by_role("button", name="Clear").click()
    expect(screen.page.locator("#history-results")).to_be_hidden()


def test_what_is_missing_is_said_and_errors_are_shown_where_they_belong(stored, screen):
    stored.truncated = True
    screen.tab("History")
    ask(screen)
    expect(screen.page.locator("#history-truncated")).to_contain_text("These are the first 5 by key and time")
    screen.page.locator("#history-question summary").click()
    stored.error = "a join must compare at most 200,000 rows of a table; got more of the stored 'ships'"
    ask(screen)
    expect(screen.page.locator("#history-error-form")).to_have_text(stored.error)
    expect(screen.page.locator("#history-results")).to_be_hidden()
    screen.page.locator("#history-form [name=span]").select_option("custom")
    fill(screen, "from", "2026-11-21T10:00:00")
    fill(screen, "to", "2026-11-21T09:00:00")
    asked = len(stored.questions)
    ask(screen)
    expect(screen.page.locator("#history-error-span")).to_contain_text("must not be later than the end; got")
    assert len(stored.questions) == asked


def test_pairs_are_asked_for_in_a_drawn_rectangle(stored, screen):
    stored.rows = [row("anna", 1, PAST, partner={**row("berta", 2, (24.41, 59.7)), "distance": 560.0})]
    screen.tab("History")
    screen.page.get_by_label("Pairs with another table").check()
    screen.page.locator("#history-predicate").select_option("dwithin")
    fill(screen, "distance", "600")
    screen.page.locator("#history-form").get_by_text("Rectangle", exact=True).click()
    screen.drag((24.2, 59.8), (24.8, 59.6))
    expect(screen.page.locator("#history-drawn")).to_contain_text("24.")
    ask(screen)
    expect(screen.page.locator("tr[data-row='0']")).to_contain_text("560 m")
    asked = stored.question
    assert (asked["type"], asked["predicate"], asked["distance"]) == ("table.join", "dwithin", 600)
    assert asked["box"]["lo"] == [pytest.approx(24.2, abs=0.02), pytest.approx(59.6, abs=0.02)]
    expect(screen.page.locator(".handle")).to_have_count(0)


def test_a_rectangle_belongs_to_the_form_that_asked_for_it(stored, screen):
    screen.page.keyboard.press("n")
    screen.tab("History")
    screen.page.locator("#history-form").get_by_text("Rectangle", exact=True).click()
    screen.drag((24.2, 59.8), (24.8, 59.6))
    expect(screen.page.locator("#history-drawn")).to_contain_text("24.")
    expect(screen.field("west")).to_have_value("")
    screen.tab("Queries")
    screen.page.locator("#form-draw").click()
    screen.drag((24.3, 59.8), (24.7, 59.6))
    expect(screen.field("west")).to_have_value(re.compile("^24.3|^24.29"))
    screen.page.keyboard.press("Escape")
    expect(screen.page.locator("#query-form")).to_be_hidden()
    screen.tab("History")
    expect(screen.page.locator("#history-drawn")).to_contain_text(re.compile("^24[.](19|2)"))
    screen.page.locator("#history-draw").click()
    expect(screen.page.locator(".draw-hint")).to_be_visible()
    screen.page.keyboard.press("Escape")
    expect(screen.page.locator(".draw-hint")).to_be_hidden()


def test_a_selected_object_is_traced(stored, screen):
    screen.page.mouse.click(*screen.pixel(*TRACK[-1]))
    screen.page.get_by_role("button", name="Where was it?").click()
    expect(screen.page.locator("#history-results")).to_be_visible()
    assert stored.question == {"type": "table.get", "table": {"stored": stored.stream}, "key": "anna", "limit": 10_000}


def test_history_is_asked_by_keyboard_on_a_small_screen(feed, screen_of, user):
    screen = screen_of(user, viewport={"width": 390, "height": 844}, has_touch=True)
    stored = StoredTables(screen.page, feed.name)
    screen.look(ZOOM, *MIDDLE)
    screen.page.keyboard.press("h")
    screen.page.locator("#history-form [name=span]").select_option("all")
    screen.page.locator("#history-key-field").focus()
    screen.page.keyboard.type("anna")
    screen.page.keyboard.press("Enter")
    expect(screen.page.locator("#history-summary")).to_be_in_viewport()
    expect(screen.page.locator("#history-rows button").first).to_be_in_viewport()
    expect_room_for_a_finger(screen.page.locator("#history-rows button").first)
    expect_no_sideways(screen.page)
    assert stored.question["key"] == "anna"

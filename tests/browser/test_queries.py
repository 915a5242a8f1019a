"""Queries drawn, followed, edited, paused and cancelled with the mouse."""

import json
import re
import time

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.screen import box_of

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.2, 59.6, 24.8, 59.8
INSIDE, OTHER_INSIDE, OUTSIDE = (24.4, 59.7), (24.65, 59.65), (25.0, 59.7)


@pytest.fixture
def drawn(screen, feed):
    """A window with one ship inside a running query's rectangle and one outside."""
    feed.put(anna=INSIDE, berta=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(OUTSIDE, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    screen.save("Roads")
    screen.expect_query("Roads", "running", "1")
    return screen


def test_objects_move_on_the_map(screen, feed):
    feed.put(anna=INSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(INSIDE, "ship")
    expect(screen.hover(INSIDE)).to_contain_text("MS Anna")
    expect(screen.hover(OUTSIDE)).to_be_hidden()
    feed.put(anna=OUTSIDE)
    assert screen.painted(OUTSIDE, "ship")
    expect(screen.hover(INSIDE)).to_be_hidden()
    expect(screen.hover(OUTSIDE)).to_contain_text("7.5 m/s")


@pytest.mark.long
def test_a_warning_is_shown_beside_the_answer_until_it_is_withdrawn(drawn):
    """The server's words about the query are changed on their way."""
    words = "reports were not believed: faster than 50 m/s since the last believed report"
    warning = {"kind": "doubted", "warning": words, "count": 12, "last": "2026-05-01T12:00:00+00:00"}

    def between(route):
        server = route.connect_to_server()

        def warned(query):
            return query | {"warnings": [] if query["status"] == "paused" else [warning]}

        def changed(message):
            told = json.loads(message) if isinstance(message, str) else {"type": "answer"}
            if told["type"] == "query.status":
                message = json.dumps(warned(told))
            if told["type"] == "query.listed":
                message = json.dumps(told | {"queries": list(map(warned, told["queries"]))})
            route.send(message)

        server.on_message(changed)

    drawn.page.route_web_socket("**/ws/monitor/?*", between)
    drawn.look(ZOOM, *MIDDLE)
    drawn.expect_query("Roads", "running", "1")
    notices = drawn.query("Roads").locator(".query-warnings .query-warning")
    expect(notices).to_have_text([re.compile(rf"{words} \(12 reports, the last at 2026-05-01 .*\)")])
    drawn.act("Roads", "Pause")
    expect(notices).to_have_count(0)


def test_a_drawn_query_runs_and_tells_who_enters_and_leaves(screen, feed):
    feed.put(anna=INSIDE, berta=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(INSIDE, "ship") and screen.painted(OUTSIDE, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.field("name").fill("Roads")
    began_s = time.monotonic()
    screen.save()
    screen.expect_query("Roads", "running", "1")
    print(f"from Save to its answer: {time.monotonic() - began_s:.2f} s")
    assert screen.painted(INSIDE, "q0") and screen.painted(OUTSIDE, "q0", present=False)

    feed.put(berta=OTHER_INSIDE)
    screen.expect_query("Roads", "running", "2")
    assert screen.painted(OTHER_INSIDE, "q0")
    expect(screen.page.locator("#unread")).to_have_text("1")
    screen.tab("Events")
    newest = screen.events().first
    expect(screen.events()).to_have_count(1)
    expect(newest.locator(".sign")).to_have_text("+")
    expect(newest.locator(".event-name")).to_have_text("MS Berta")
    expect(newest.locator(".event-key")).to_have_text("berta")
    expect(newest.locator(".event-about")).to_have_text("Roads \u00b7 moved in")
    expect(newest.locator("time")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d$"))
    expect(screen.page.locator("#unread")).to_have_text("")

    feed.put(anna=OUTSIDE)
    expect(screen.events()).to_have_count(2)
    expect(newest.locator(".sign")).to_have_text("\u2212")
    expect(newest.locator(".event-name")).to_have_text("MS Anna")
    expect(newest.locator(".event-about")).to_have_text("Roads \u00b7 moved out")
    assert screen.painted(OUTSIDE, "q0", present=False)
    screen.tab("Queries")
    screen.expect_query("Roads", "running", "1")


@pytest.mark.long
def test_events_of_one_object_are_one_row_and_the_list_can_stand_still(drawn, feed):
    page, pause = drawn.page, drawn.page.locator("#event-pause")
    for berta, count in ((INSIDE, "2"), (OUTSIDE, "1"), (INSIDE, "2"), (OUTSIDE, "1")):
        feed.put(berta=berta)
        drawn.expect_query("Roads", "running", count)
    drawn.tab("Events")
    expect(drawn.events()).to_have_count(1)
    expect(drawn.events().locator(".event-key")).to_have_text("berta")
    expect(drawn.events().locator(".event-about")).to_have_text("Roads \u00b7 in and out 2 times")
    drawn.events().click()
    expect(drawn.events()).to_have_attribute("aria-expanded", "true")
    expect(page.locator(".event-single .event-about")).to_have_text(["moved out", "moved in"] * 2)

    pause.click()
    feed.put(anna=OUTSIDE)
    expect(pause).to_have_text("Resume (1 new)")
    expect(drawn.events()).to_have_count(1)
    pause.click()
    expect(pause).to_have_text("Pause")
    expect(drawn.events().locator(".event-name")).to_have_text(["MS Anna", "MS Berta"])

    page.get_by_label("Which events").select_option("Entered")
    expect(drawn.events().locator(".event-name")).to_have_text(["MS Berta"])
    expect(drawn.events().locator(".event-about")).to_have_text("Roads \u00b7 entered 2 times")


def test_an_empty_answer_says_so_until_something_enters(screen, feed):
    feed.put(berta=OUTSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(OUTSIDE, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.save("Roads")
    screen.expect_query("Roads", "running", "0")
    note = screen.query("Roads").locator(".query-note")
    expect(note).to_be_visible()
    expect(note).to_have_text(f"No object of Ships of {feed.name} matches now.")
    feed.put(berta=INSIDE)
    screen.expect_query("Roads", "running", "1")
    expect(note).to_be_hidden()


def test_the_stream_with_the_most_objects_is_proposed_until_another_is_chosen(screen, feed, second_feed):
    feed.put(anna=OUTSIDE)
    second_feed.put(berta=INSIDE, carla=OTHER_INSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(OUTSIDE, "ship") and screen.painted(INSIDE, "ship") and screen.painted(OTHER_INSIDE, "ship")
    screen.draw(24.9, SOUTH, 25.1, NORTH)
    expect(screen.field("stream")).to_have_value(feed.name)
    screen.page.get_by_role("button", name="Draw", exact=True).click()
    screen.drag((WEST, NORTH), (25.1, SOUTH))
    expect(screen.field("stream")).to_have_value(second_feed.name)
    screen.field("stream").select_option(feed.name)
    screen.drag((25.1, SOUTH), (24.7, 59.62))
    expect(screen.field("east")).to_have_value(re.compile(r"^24\.(69|7)"))
    expect(screen.field("stream")).to_have_value(feed.name)


@pytest.mark.long
def test_dragging_a_corner_leaves_objects_outside(drawn, feed):
    feed.put(berta=OTHER_INSIDE)
    drawn.expect_query("Roads", "running", "2")
    drawn.act("Roads", "Edit")
    before = drawn.plan()
    drawn.drag_handle("se", to="s")
    expect(drawn.field("east")).to_have_value(re.compile(r"^24\.(49|5)"))
    dragged = drawn.plan()
    drawn.drag_handle("nw", to="n")
    drawn.page.locator("#map").focus()
    drawn.page.keyboard.press("Control+z")
    assert drawn.plan() == dragged
    drawn.page.get_by_role("button", name="Undo").click()
    assert drawn.plan() == before
    expect(drawn.page.get_by_role("button", name="Undo")).to_be_hidden()
    drawn.drag_handle("se", to="s")
    drawn.save("Roads, west")
    drawn.expect_query("Roads, west", "running", "1")
    drawn.tab("Events")
    expect(drawn.events().first.locator(".sign")).to_have_text("\u2212")
    expect(drawn.events().first.locator(".event-name")).to_have_text("MS Berta")
    drawn.events().first.click()
    expect(drawn.page.locator(".event-single .event-about").first).to_have_text("left by the edit")


def test_a_card_is_two_lines_and_shows_its_actions_when_it_is_pointed_at(drawn):
    card = drawn.query("Roads")
    edit = card.get_by_role("button", name="Edit", exact=True)
    drawn.page.mouse.move(900, 400)
    expect(edit).to_be_hidden()
    boxes = [box_of(card.locator(part)) for part in (".query-name", ".query-count", ".pill")]
    assert max(box["y"] for box in boxes) < min(box["y"] + box["height"] for box in boxes)
    assert box_of(card)["height"] < 64
    card.hover()
    expect(edit).to_be_visible()
    expect(edit).to_have_attribute("title", "Edit")
    drawn.page.mouse.move(900, 400)
    expect(edit).to_be_hidden()
    card.locator(".swatch").focus()
    for _ in range(3):
        drawn.page.keyboard.press("Tab")
    expect(card.get_by_role("button", name="Events", exact=True)).to_be_focused()
    expect(card.locator(".query-about")).to_have_attribute("title", re.compile("inside a rectangle"))


@pytest.mark.long
def test_a_query_is_renamed_paused_resumed_and_cancelled(drawn, feed):
    drawn.act("Roads", "Edit")
    drawn.save("Anchorage")
    drawn.expect_query("Anchorage", "running", "1")
    drawn.act("Anchorage", "Pause")
    drawn.expect_query("Anchorage", "paused")
    feed.put(berta=OTHER_INSIDE)
    drawn.act("Anchorage", "Resume")
    drawn.expect_query("Anchorage", "running", "2")
    drawn.act("Anchorage", "Delete")
    drawn.page.locator("#confirm").get_by_text("Keep").click()
    drawn.expect_query("Anchorage", "running", "2")
    drawn.act("Anchorage", "Delete")
    drawn.page.locator("#confirm-yes").click()
    expect(drawn.page.locator("[data-query]")).to_have_count(0)
    expect(drawn.page.locator("#toasts")).to_contain_text("Deleted")
    drawn.page.reload()
    drawn.live()
    expect(drawn.page.locator("#queries-empty")).to_be_visible()


def test_a_filter_that_does_not_parse_is_refused_at_its_field(screen, feed, live, user):
    feed.put(anna=INSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(INSIDE, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.field("where").fill("speed_mps >")
    screen.save("Broken")
    expect(screen.page.locator("#error-where")).to_contain_text("A value is missing at the end, character 12")
    expect(screen.field("where")).to_be_focused()
    assert not [query for query in live.queries().values() if query["name"] == "Broken"]
    screen.field("where").fill("speed_mps > 5")
    screen.save()
    screen.expect_query("Broken", "running", "1")
    screen.act("Broken", "Edit")
    screen.field("where").fill("speed_mps > 50")
    screen.save("Fast")
    screen.expect_query("Fast", "running", "0")


@pytest.mark.long
def test_the_answer_is_right_again_after_the_web_process_is_killed(drawn, feed, live):
    killed = live.kill("web")
    expect(drawn.page.locator("#connection-text")).to_contain_text("Connection lost")
    feed.put(anna=OUTSIDE, berta=INSIDE, carla=OTHER_INSIDE)
    drawn.live()
    drawn.expect_query("Roads", "running", "2")
    assert live.pids()["web"] != killed
    assert drawn.painted(OTHER_INSIDE, "q0") and drawn.painted(OUTSIDE, "q0", present=False)
    refused = [fault for fault in drawn.faults if "WebSocket" in fault]
    assert refused == drawn.faults  # Chromium writes each vain attempt to the console
    drawn.faults.clear()


def test_a_plan_is_written_as_json_beside_the_form(screen, feed):
    feed.put(anna=INSIDE)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(INSIDE, "ship")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.page.locator("#plan-details summary").click()
    plan = screen.plan()
    assert plan["stream"] == feed.name and plan["report"] == "inside"
    screen.field("where").fill("speed_mps > 50")
    assert screen.plan()["where"] == "speed_mps > 50"
    screen.field("plan").fill(json.dumps(plan | {"where": "speed_mps > 5", "colour": "red"}))
    expect(screen.field("where")).to_have_value("speed_mps > 5")
    screen.save("By hand")
    expect(screen.page.locator("#error-plan")).to_contain_text("colour")
    screen.field("plan").fill("{")
    expect(screen.page.locator("#error-plan")).to_contain_text("must be JSON")
    screen.field("plan").fill(json.dumps(plan | {"where": "speed_mps > 5", "transform": [{"enlarge_m": 5}]}))
    screen.save()
    screen.expect_query("By hand", "running", "1")


# What changes on the page from now on: cards, apart from their note that the page is behind, and shapes on the map.
TOUCHED = """() => {
  window.touched = {cards: new Set(), shapes: new Set(), how: new Set()};
  const look = (target, note) => new MutationObserver((records) => records.forEach(note)).observe(
    document.querySelector(target),
    {subtree: true, childList: true, attributes: true, attributeOldValue: true, characterData: true});
  const element = (node) => node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  look("#query-list", ({target, type, attributeName, oldValue, addedNodes, removedNodes}) => {
    const within = element(target);
    if (type === "attributes" && within.getAttribute(attributeName) === oldValue) return;
    if (attributeName === "data-stale" || within.closest(".query-note")) return;
    // What is said of the list as a whole touches no card, unless it puts one in or takes one out.
    const cards = [...addedNodes, ...removedNodes].filter((node) => node instanceof Element && "query" in node.dataset);
    for (const card of [within.closest("[data-query]"), ...cards]) if (card) touched.cards.add(card);
    touched.how.add(`${attributeName ?? type} of ${within.className}: ${within.textContent.slice(0, 60)}`);
  });
  look(".leaflet-overlay-pane", (record) => {
    const nodes = record.type === "childList" ? [...record.addedNodes, ...record.removedNodes] : [record.target];
    for (const node of nodes) if (node.matches("path")) touched.shapes.add(node);
  });
}"""
COUNTED = "() => [touched.cards.size, touched.shapes.size, [...touched.how].slice(0, 20), closed_by_server]"


# Records with which codes connections of the page end, but those that it gives up, since a busy machine is silent.
CLOSED = """(() => {
  const codes = (window.closed_by_server = []);
  window.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url);
      this.addEventListener("close", ({ code }) => this.givenUp || codes.push(code));
    }
    close(...why) {
      this.givenUp = true;
      super.close(...why);
    }
  };
})()"""


def end_queries(live, user):
    """Delete all queries of a user, and wait for their ends: the streams of other tests come after them in the log."""
    live.run("remove_queries", user)
    wait_for(lambda: live.run("ending") == 0, "the ends of the queries")


@pytest.mark.long
def test_a_page_of_a_thousand_queries_gets_all_answers_and_a_status_touches_one_card_and_shape(
    screen, feed, live, user
):
    feed.put(anna=INSIDE)
    screen.look(ZOOM, *MIDDLE)
    page = screen.page
    live.run("add_queries", user, {"stream": feed.name, "compare": {"lo": [WEST, SOUTH], "hi": [EAST, NORTH]}}, 1000)
    try:
        page.add_init_script(CLOSED)
        page.reload()
        screen.live()
        expect(page.locator("#query-count")).to_have_text("1,000")
        expect(page.locator("#query-total")).to_have_text("1,000 queries")
        expect(page.locator("#query-list")).to_have_attribute("aria-busy", "false")
        live.run("reconcile")
        answered = page.locator(".query-count").filter(has_text=re.compile("^1$"))
        expect(answered).to_have_count(1000)
        expect(page.locator("#query-list .pill[data-status=running]")).to_have_count(1000)
        page.evaluate(TOUCHED)
        card = page.locator(".query").first
        card.locator(".query-main").click()
        for action, status in (("Pause", "paused"), ("Resume", "running")):
            card.get_by_role("button", name=action, exact=True).click()
            expect(card.locator(".pill")).to_have_text(status)
        expect(card.locator(".query-count")).to_have_text("1")
        cards, shapes, how, closed = page.evaluate(COUNTED)
        assert cards == 1, how
        assert 0 < shapes <= 6
        assert closed == []
    finally:
        end_queries(live, user)

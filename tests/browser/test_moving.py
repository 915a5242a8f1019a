"""Queries that move: from the menu to the map, the card and the events."""

import json
import math
import re
import time

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from tests.browser.screen import box_of, record_values, recorded

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 10, (24.5, 59.7)
HERE, NEAR, THERE, FAR = (24.5, 59.7), (24.55, 59.71), (24.9, 59.72), (24.93, 59.7)
EMPTY = (24.3, 59.6)
RADIUS_M = 10_000
EARTH_M = 6_371_008.8


def east_of(place, metres):
    """Return the place so far to the east of another one."""
    return place[0] + math.degrees(metres / (EARTH_M * math.cos(math.radians(place[1])))), place[1]


@pytest.fixture
def seen(screen, feed):
    """A window that shows Anna, Berta near her, and Carla far away."""
    feed.put(anna=HERE, berta=NEAR, carla=FAR)
    screen.look(ZOOM, *MIDDLE)
    for place in (HERE, NEAR, FAR):
        assert screen.painted(place, "ship")
    return screen


def choose_units(screen, name):
    """Choose the units of figures."""
    screen.tab("Layers")
    screen.page.locator("#units").get_by_text(name).click()
    screen.tab("Queries")


def plan_of(live, name):
    """Return the plan of a saved query, by its name."""
    return next(query["plan"] for query in live.queries().values() if query["name"] == name)


def test_one_click_watches_around_an_object_and_the_circle_goes_with_it(seen, feed):
    menu = seen.menu(HERE)
    expect(menu).to_contain_text("MS Anna")
    began_s = time.monotonic()
    menu.get_by_role("menuitem", name="Watch 10 km around it").click()
    name = "10 km around MS Anna"
    seen.expect_query(name, "running", "1")
    print(f"from the click to the answer: {time.monotonic() - began_s:.2f} s")
    expect(menu).to_be_hidden()
    expect(seen.query(name).locator(".query-about")).to_contain_text("within 10 km of MS Anna")
    assert seen.painted(NEAR, "q0") and seen.painted(FAR, "q0", present=False)
    seen.expect_at(".around-range", HERE)
    radius_px = seen.pixel(*east_of(HERE, RADIUS_M))[0] - seen.pixel(*HERE)[0]
    circle = seen.page.locator(".around-range")
    wait_for(lambda: box_of(circle)["width"] / 2 == pytest.approx(radius_px, abs=3), "a circle of 10 km")

    feed.put(anna=THERE)
    seen.expect_at(".around-range", THERE)
    seen.expect_at(".around-focus", THERE)
    assert seen.painted(FAR, "q0") and seen.painted(NEAR, "q0", present=False)
    seen.tab("Events")
    expect(seen.events()).to_have_count(2)
    for name, sign in {"MS Carla": "+", "MS Berta": "\u2212"}.items():
        expect(seen.events().filter(has_text=name).locator(".sign")).to_have_text(sign)


def test_dragging_the_handle_changes_the_radius_and_the_answer_and_can_be_taken_back(seen, feed, live):
    seen.menu(HERE).get_by_role("menuitem", name="Watch").click()
    name = "10 km around MS Anna"
    seen.expect_query(name, "running", "1")
    number = next(number for number, query in live.queries().items() if query["name"] == name)
    handle = seen.page.locator(".handle-radius")
    x, y = seen.pixel(*east_of(HERE, 26_000))
    box = box_of(handle)
    seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.mouse.down()
    seen.page.mouse.move(x, y + 10, steps=5)
    expect(seen.page.locator(".reach")).to_have_text(re.compile(r"^26 km$|^2[56]\.\d km$"))
    seen.page.mouse.up()
    changed = seen.page.locator(".query").filter(has_text=re.compile(r"(26|2[56]\.\d) km around MS Anna"))
    expect(changed.locator(".query-count")).to_have_text("2")  # the name has the new figure
    assert live.queries()[number]["plan"]["around"]["radius"] == pytest.approx(26_000, rel=0.02)
    expect(seen.page.locator("#object-panel")).to_be_hidden()
    seen.expect_at(".around-range", HERE)
    seen.page.locator(".toast").get_by_role("button", name="Undo").click()
    seen.expect_query(name, "running", "1")
    assert plan_of(live, name)["around"]["radius"] == 10_000


@pytest.mark.long
def test_a_rectangle_is_written_in_the_form_and_dragged_on_the_map(seen, feed, live):
    seen.menu(HERE).get_by_role("menuitem", name="Another query").click()
    expect(seen.field("focusKey")).to_have_value("anna")
    expect(seen.field("radius")).to_have_value("10")
    seen.field("shape").select_option("half_widths")
    seen.field("acrossUnit").select_option("km")
    seen.field("across").fill("10")
    seen.field("alongUnit").select_option("km")
    seen.field("along").fill("2")
    seen.save("Ahead and astern")
    seen.expect_query("Ahead and astern", "running", "1")
    assert plan_of(live, "Ahead and astern")["around"]["half_widths"] == [10_000, 2_000]
    seen.drag_handle("along", to="both")
    seen.act("Ahead and astern", "Edit")
    seen.field("alongUnit").select_option("km")
    seen.field("along").fill("0.5")
    seen.save()
    seen.expect_query("Ahead and astern", "running", "0")


def test_a_wrong_length_is_refused_at_its_field(seen):
    seen.menu(HERE).get_by_role("menuitem", name="Another query").click()
    seen.field("radius").fill("99999")
    seen.save("Everywhere")
    expect(seen.page.locator("#error-shape")).to_contain_text("radius must be")
    seen.field("focusKey").fill("")
    seen.save()
    expect(seen.page.locator("#error-focus")).to_contain_text("Type the key of an object")


def test_neighbours_are_lines_and_a_list_in_the_order_of_their_ranks(seen, feed):
    seen.menu(HERE).get_by_role("menuitem", name="10 nearest").click()
    name = "10 nearest to MS Anna"
    seen.expect_query(name, "running", "2")
    listed = seen.query(name).locator(".neighbour")
    expect(listed).to_have_text([re.compile(r"^1MS Berta3\.0\d km"), re.compile(r"^2MS Carla24\.\d km")])
    expect(seen.page.locator(".rank")).to_have_text(["1", "2"])
    lines = seen.page.locator(".around-lines")
    expect(lines).to_have_attribute("d", re.compile("^[^M]*(M[^M]*){2}$"))
    feed.put(berta=FAR, carla=NEAR, dora=east_of(HERE, 1000))
    expect(listed).to_have_text([re.compile("^1MS Dora1 km"), re.compile("^2MS Carla"), re.compile("^3MS Berta")])
    expect(lines).to_have_attribute("d", re.compile("^[^M]*(M[^M]*){3}$"))
    listed.first.click()
    expect(seen.page.locator("#object-title")).to_have_text("MS Dora")


@pytest.mark.long
def test_a_count_has_its_course_and_a_threshold_that_is_crossed(seen, feed):
    seen.menu(HERE).get_by_role("menuitem", name="Count around it").click()
    name = "Count 10 km around MS Anna"
    seen.expect_query(name, "running", "1")
    spark = seen.query(name).locator(".sparkline-line")
    expect(spark).to_have_attribute("d", re.compile(r"^M[\d.]+ 14H120$"))
    seen.act(name, "Edit")
    seen.page.get_by_role("button", name="Add a threshold").click()
    seen.page.get_by_label("Limit").fill("1")
    seen.save("Ships near Anna")
    threshold = seen.query("Ships near Anna").locator(".threshold")
    expect(threshold).to_have_text("above 1")
    expect(threshold).to_have_attribute("data-raised", "false")
    feed.put(carla=NEAR)
    seen.expect_query("Ships near Anna", "running", "2")
    expect(threshold).to_have_attribute("data-raised", "true")
    spark = seen.query("Ships near Anna").locator(".sparkline-line")
    expect(spark).to_have_attribute("d", re.compile(r"^M[\d.]+ 26H.*L[\d.]+ 2H120$"))
    feed.put(carla=FAR)
    seen.expect_query("Ships near Anna", "running", "1")
    seen.tab("Events")
    expect(seen.events().locator(".event-name")).to_have_text(["Ships near Anna: no longer above 1 (now 1)"])
    expect(seen.events().locator(".event-about")).to_have_text(["threshold \u00b7 crossed and back once"])
    seen.events().click()
    singles = ["Ships near Anna: no longer above 1 (now 1)", "Ships near Anna: above 1 (now 2)"]
    expect(seen.page.locator(".event-single .event-about")).to_have_text(singles)


@pytest.mark.long
def test_groups_have_rows_and_the_object_with_the_largest_value_is_a_button(seen, feed):
    seen.menu(HERE).get_by_role("menuitem", name="Another query").click()
    seen.field("radius").fill("40")
    seen.field("function").select_option("max")
    seen.field("of").select_option("longitude")
    seen.save("Easternmost")
    card = seen.query("Easternmost")
    seen.expect_query("Easternmost", "running", "24.93")
    card.get_by_role("button", name="MS Carla").click()
    expect(seen.page.locator("#object-title")).to_have_text("MS Carla")
    seen.act("Easternmost", "Edit")
    seen.field("function").select_option("count")
    seen.field("groupBy").fill("name")
    seen.save("By name")
    figures = seen.query("By name").locator(".figure")
    expect(figures.locator(".figure-name")).to_have_text(["MS Berta", "MS Carla"])
    expect(figures.locator(".figure-value")).to_have_text(["1", "1"])


def test_a_fixed_place_is_moved_by_its_handle(seen, feed, live):
    seen.menu(EMPTY).get_by_role("menuitem", name="Count around here").click()
    name = "Count 10 km around 59.60\u00b0 N, 24.30\u00b0 E"
    seen.expect_query(name, "running", "0")
    seen.expect_at(".handle-place", EMPTY)
    x, y = seen.pixel(*NEAR)
    seen.page.mouse.move(*seen.pixel(*EMPTY))
    seen.page.mouse.down()
    seen.page.mouse.move(x, y, steps=5)
    seen.page.mouse.up()
    seen.expect_query(name, "running", "2")
    assert plan_of(live, name)["around"]["at"] == pytest.approx(NEAR, abs=0.003)
    seen.expect_at(".around-range", NEAR)


def tabbed(page, name):
    """Press Tab until what has a name has the focus, and return it."""
    wanted = page.get_by_role("slider", name=name).or_(page.get_by_role("button", name=name))
    expect(wanted).to_have_count(1)
    for _ in range(100):
        if wanted.evaluate("(element) => element === document.activeElement"):
            return wanted
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {name}")


@pytest.mark.long
def test_a_range_is_made_and_changed_by_keyboard_alone(seen, live):
    keys, name = seen.page.keyboard, "5 nm around MS Anna"
    choose_units(seen, "Nautical")
    keys.press("/")
    keys.type("ms anna")  # towns begin with the second word
    expect(seen.page.locator("#search-results [role=option]")).to_have_count(1)
    keys.press("Enter")
    expect(seen.page.locator("#object-title")).to_have_text("MS Anna")
    expect(seen.page.locator("#map")).to_be_focused()
    tabbed(seen.page, "Around it")
    keys.press("Enter")
    keys.press("Enter")
    seen.expect_query(name, "running", "1")
    tabbed(seen.page, f"Radius of {name}")
    handle = seen.page.locator(".handle-radius")
    expect(handle).to_have_attribute("aria-valuetext", "5 nm")
    view = seen.page.url
    keys.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuenow", "9360")
    expect(seen.page.locator(".reach")).to_have_text("5.05 nm")
    keys.press("Shift+ArrowUp")
    expect(handle).to_have_attribute("aria-valuenow", "10360")
    keys.press("Escape")
    expect(handle).to_have_attribute("aria-valuenow", "9260")
    expect(handle).to_be_focused()
    record_values(handle)
    for _ in range(2):
        keys.press("Shift+ArrowRight")
    keys.press("Enter")
    seen.expect_query("10.9 nm around MS Anna", "running", "1")
    expect(handle).to_be_focused()
    keys.press("Shift+ArrowRight")
    keys.press("Tab")
    seen.expect_query("16.3 nm around MS Anna", "running", "2")
    assert plan_of(live, "16.3 nm around MS Anna")["around"]["radius"] == 30_260
    assert recorded(handle) == ["9260", "10260", "20260", "30260"], (
        "a value that was saved is not shown as before for a moment"
    )
    assert seen.page.url == view


@pytest.mark.long
def test_how_far_neighbours_may_be_away_has_a_handle(seen, live):
    seen.menu(EMPTY).get_by_role("menuitem", name="Another query").click()
    seen.page.get_by_text("Nearest", exact=True).click()
    seen.field("maxDistanceUnit").select_option("nm")
    seen.field("maxDistance").fill("10")
    seen.save("Near there")
    seen.expect_query("Near there", "running", "1")
    handle = tabbed(seen.page, "Farthest of Near there")
    seen.expect_at(".handle-farthest", east_of(EMPTY, 18_520))
    seen.page.keyboard.press("ArrowLeft")
    expect(handle).to_have_attribute("aria-valuenow", "17520")
    seen.page.keyboard.press("Enter")
    wait_for(lambda: plan_of(live, "Near there")["max_distance"] == 17_520, "the distance that Enter saved")
    x, y = seen.pixel(*plan_of(live, "Near there")["around"]["at"])
    tabbed(seen.page, "Place of Near there")
    seen.page.keyboard.press("Shift+ArrowRight")
    seen.page.keyboard.press("Shift+ArrowRight")
    seen.page.keyboard.press("Shift+ArrowUp")
    seen.page.keyboard.press("Enter")
    seen.expect_query("Near there", "running", "2")
    assert seen.pixel(*plan_of(live, "Near there")["around"]["at"]) == pytest.approx((x + 100, y - 50), abs=1)


def test_the_menu_opens_by_keyboard_and_gives_the_focus_back(seen):
    seen.page.mouse.click(*seen.pixel(*HERE))
    expect(seen.page.locator("#object-title")).to_have_text("MS Anna")
    button = seen.page.get_by_role("button", name="Around it")
    button.focus()
    seen.page.keyboard.press("Enter")
    menu = seen.page.locator("#around-menu")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    seen.page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()
    seen.page.keyboard.press("a")
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("Enter")
    seen.expect_query("10 nearest to MS Anna", "running", "2")


@pytest.mark.long
def test_a_long_press_opens_the_menu_on_a_phone(screen_of, user, feed):
    feed.put(anna=HERE)
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    screen = screen_of(user, **phone)
    screen.look(ZOOM, *MIDDLE)
    assert screen.painted(HERE, "ship")
    x, y = screen.pixel(*HERE)
    touch = screen.page.context.new_cdp_session(screen.page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    menu = screen.page.locator("#around-menu")
    expect(menu).to_be_visible()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    expect(screen.page.locator("#object-panel")).to_be_hidden()
    expect(menu).to_contain_text("MS Anna")
    menu.get_by_role("menuitem", name="Watch").tap()
    screen.expect_query("10 km around MS Anna", "running", "0")


@pytest.mark.long
def test_a_lost_focal_object_is_told_until_it_is_heard_again(screen, brief_feed):
    name = "10 km around MS Anna"
    with brief_feed.repeated(anna=HERE, berta=NEAR):
        screen.look(ZOOM, *MIDDLE)
        assert screen.painted(HERE, "ship")
        screen.menu(HERE).get_by_role("menuitem", name="Watch").click()
        screen.expect_query(name, "running", "1")
    note = screen.query(name).locator(".query-focus")
    expect(note).to_have_text(re.compile("^MS Anna is lost: its last report was .* ago. The answer is empty"))
    screen.expect_query(name, "running", "0")
    screen.expect_at(".around-range", HERE)
    with brief_feed.repeated(anna=NEAR, berta=HERE):
        expect(note).to_be_hidden()
        screen.expect_query(name, "running", "1")
        screen.expect_at(".around-range", NEAR)


def test_how_it_is_answered_names_the_servers_and_counts_what_they_send(seen, feed, live):
    live.cut_regions(4)
    seen.menu(HERE).get_by_role("menuitem", name="Watch").click()
    name = "10 km around MS Anna"
    seen.expect_query(name, "running", "1")
    roles = seen.query(name).locator(".roles")
    roles.locator("summary").click()
    expect(roles).to_contain_text(re.compile(r"Home serverpartition [01] of 2"))
    expect(roles).to_contain_text("Tracking serverregion 3, 0\u00b0 to 180\u00b0 E, 0\u00b0 to 90\u00b0 N")
    expect(roles).to_contain_text(re.compile(r"Assemblerearth:[0-9a-f]{8}"))
    region = roles.locator("[data-region='3']")
    expect(region.locator("th")).to_have_text("Region 3")
    before = int(wait_for(lambda: region.locator("td").last.inner_text(), "a count of the region"))
    feed.put(berta=east_of(HERE, 500))
    wait_for(lambda: int(region.locator("td").last.inner_text()) > before, "a tuple of the region")
    feed.put(anna=(-0.02, 59.7), berta=(0.02, 59.7))
    expect(roles).to_contain_text("Tracking serverregion 1, 180\u00b0 W to 0\u00b0")
    expect(roles.locator("tbody th")).to_have_text(["Region 1", "Region 3"])


@pytest.mark.long
def test_after_the_web_process_is_killed_the_answer_goes_on_without_a_snapshot(seen, feed, live):
    seen.menu(HERE).get_by_role("menuitem", name="Watch").click()
    seen.expect_query("10 km around MS Anna", "running", "1")
    told = []
    seen.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: told.append(frame)))
    live.kill("web")
    expect(seen.page.locator("#connection-text")).to_contain_text("Connection lost")
    feed.put(carla=NEAR, berta=FAR)
    seen.live()
    seen.tab("Events")
    expect(seen.events()).to_have_count(2)
    for about in ("moved in", "moved out"):
        whole = re.compile(rf"^[^\u00b7]+ \u00b7 {about}( \u00b7 |$)")
        expect(seen.events().locator(".event-about").filter(has_text=whole)).to_have_count(1)
    resumed = [json.loads(text) for text in told if isinstance(text, str) and '"answer.resumed"' in text]
    assert len(resumed) == 1
    assert all("WebSocket" in fault for fault in seen.faults)  # Chromium writes each vain attempt to the console
    seen.faults.clear()


@pytest.mark.long
def test_figures_are_in_the_units_that_were_chosen_also_after_a_reload(seen):
    scale = seen.page.locator(".leaflet-control-scale-line")
    expect(scale).to_have_text(re.compile(r"^\d+ k?m$"))
    seen.menu(HERE).get_by_role("menuitem", name="10 nearest").click()
    nearest = seen.query("10 nearest to MS Anna").locator(".neighbour-away").first
    expect(nearest).to_have_text(re.compile(r"^3\.0\d km$"))
    for name, away, bar, speed in (
        ("Imperial", r"^1\.8\d mi$", r" (mi|ft)$", "16.8 mph"),
        ("Nautical", r"^1\.6\d nm$", r" (nm|m)$", "14.6 kn"),
    ):
        choose_units(seen, name)
        expect(nearest).to_have_text(re.compile(away))
        expect(scale).to_have_text(re.compile(bar))
        expect(seen.hover(HERE)).to_contain_text(speed)
    seen.page.reload()
    seen.query("10 nearest to MS Anna").locator(".query-main").click()
    expect(nearest).to_have_text(re.compile(r"^1\.6\d nm$"))
    expect(seen.menu(HERE)).to_contain_text("Watch 5 nm around it")

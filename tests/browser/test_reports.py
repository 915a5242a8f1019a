"""Who was in an area, and how long: a report from the form to the table, the chart, the map and a file."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from playwright.sync_api import expect

from bench.live import wait_for
from bench.ports import free_port
from tests.browser.feed import connected, feature
from tests.browser.screen import expect_no_sideways, expect_room_for_a_finger, unfold
from tests.browser.test_accessibility import wrong
from tests.browser.test_layers import name as name
from tests.browser.test_layers import row as row_of
from tests.browser.test_layers import upload

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
WEST, SOUTH, EAST, NORTH = 24.2, 59.6, 24.6, 59.75
ELSEWHERE, INSIDE = (25.0, 59.7), (24.4, 59.65)  # this place lies in the square of the layer, too
FIRST_DAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=3)
_numbers = count(1)


class Past:
    """A stored stream of ships whose reports say when they were made: in the last days.

    MS Anna comes in by 10:30 of the first day, is still there at 12:00, and leaves at once. On the second day, she
    lies there from 20:00 to 22:00 of the third. MS Berta comes by on the third day. MS Carla is elsewhere.
    """

    def __init__(self, live):
        self.live, self.name, port = live, f"past{next(_numbers)}", free_port()
        listener, decoder = {"kind": "tcp_listener", "port": port}, {"kind": "geojson", "time": "at"}
        live.add_stream(self.name, listener, decoder, title="Past ships", icon="ship", stored=True)
        self.line = wait_for(lambda: connected(port), "a listener")
        east = [(24.3 + 0.01 * step, 59.65) for step in range(11)]
        anna = [(0, 10.35, ELSEWHERE), *((0, 10.5 + 0.15 * step, place) for step, place in enumerate(east))]
        anna += [(0, 12.1, ELSEWHERE), *((1, 20 + 0.1 * step, INSIDE) for step in range(41))]
        anna += [(1, 24 + 0.15 * step, INSIDE) for step in range(1, 147)]
        berta = [(2, 8, ELSEWHERE), (2, 8.15, (24.55, 59.72)), (2, 8.3, ELSEWHERE)]
        for key, way in (("anna", anna), ("berta", berta), ("carla", [(2, 9, ELSEWHERE)])):
            for day, hour, place in way:
                self.put(key, FIRST_DAY + timedelta(days=day, hours=hour), place)

    def put(self, key, at, place):
        made = feature(key, place)
        made["properties"]["at"] = at.isoformat()
        self.line.sendall(f"{json.dumps(made)}\n".encode())

    def end(self):
        self.line.close()
        self.live.remove_stream(self.name)


@pytest.fixture
def past(live):
    stream = Past(live)
    yield stream
    stream.end()


def set_up(screen, stream, where, what="objects"):
    """Open the form, and fill it in for the four days from the first one on."""
    screen.tab("History")
    screen.page.locator("#pane-history").get_by_text("Report", exact=True).click()
    again(screen)
    choose(screen, "stream", stream.name)
    choose(screen, "report", what)
    choose(screen, "span", "custom")
    fill(screen, "from", f"{FIRST_DAY:%Y-%m-%d}T00:00:00")
    fill(screen, "to", f"{FIRST_DAY + timedelta(days=3):%Y-%m-%d}T23:00:00")
    choose(screen, "where", where)


def choose(screen, field, value):
    screen.page.locator(f"#report-form [name={field}]").select_option(value)


def fill(screen, field, text):
    screen.page.locator(f"#report-form [name={field}]").fill(text)


def make(screen):
    screen.page.get_by_role("button", name="Make report").click()


def again(screen):
    """Open the form once more."""
    unfold(screen.page, "#report-question")


def summary(screen):
    return screen.page.locator("#report-summary")


def cells(screen, row):
    return screen.page.locator(f"#report-rows tbody tr:nth-child({row}) td")


def until_stored(screen, stream):
    """Ask until everything that was sent is stored."""

    def rows():
        span = {"from": FIRST_DAY.timestamp(), "to": FIRST_DAY.timestamp() + 4 * 86400}
        response = screen.page.context.request.get(f"{screen.base_url}/reports/{stream.name}", params=span)
        return response.ok and response.json()["counts"]["elements"] == 204

    wait_for(rows, "everything stored")


@pytest.mark.long
def test_who_was_in_a_rectangle_how_long_and_where_they_went(past, screen, tmp_path):
    screen.look(ZOOM, *MIDDLE)
    until_stored(screen, past)
    page, found = screen.page, {}
    set_up(screen, past, "rectangle")
    make(screen)
    expect(page.locator("#report-error-where")).to_have_text("Draw the area on the map.")
    found["form with an error"] = wrong(page)
    page.locator("#report-draw").click()
    screen.drag((WEST, NORTH), (EAST, SOUTH))
    expect(page.locator("#report-drawn")).to_have_text(re.compile(r"^24[.](2|19)"))
    page.locator("#report-terms summary").click()
    found["whole form"] = wrong(page)
    fill(screen, "gap", "40")
    make(screen)

    expect(summary(screen)).to_have_text(re.compile("^2 objects, from 20[0-9] fixes$"))
    expect(cells(screen, 1).first).to_contain_text("anna")
    expect(page.locator("#report-rows tbody tr")).to_have_count(2)
    expect(page.locator("#report-plot rect.chart-bar")).to_have_count(4)
    expect(page.locator("#report-plot .chart-told")).to_contain_text("1")
    page.locator("#report-measure").select_option("dwell_s")
    plot = page.locator("#report-plot [role=slider]")
    plot.focus()
    page.keyboard.press("Home")
    expect(page.locator("#report-plot .chart-told")).to_have_text(re.compile(f"^{FIRST_DAY:%Y-%m-%d}: 1 h 3. min$"))
    page.keyboard.press("End")
    expect(page.locator("#report-plot .chart-told")).to_contain_text("0 s")
    found["answer"] = wrong(page)

    heading = page.get_by_role("columnheader", name="Dwell")
    heading.get_by_role("button").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    expect(cells(screen, 1).first).to_contain_text("berta")

    cells(screen, 1).first.get_by_role("button").click()
    expect(page.locator("#report-way")).to_have_text("MS Berta: 3 fixes on the map.")
    expect(page.locator("#report-rows tr[aria-selected=true]")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"/59[.]6\d*/24[.](39|40)"))
    found["a way on the map"] = wrong(page)
    expect(page.locator("#report-rows tr[aria-selected=true]")).to_contain_text("berta")  # also after another theme

    with page.expect_download() as download:
        page.get_by_role("link", name="Download as CSV").click()
    assert download.value.suggested_filename == f"{past.name}-objects.csv"
    download.value.save_as(tmp_path / "report.csv")
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text().splitlines()))
    assert [row["key"] for row in rows] == ["anna", "berta"]
    assert [(row["visits"], row["entries"], row["exits"]) for row in rows] == [("2", "1", "1"), ("1", "1", "1")]
    assert not any(found.values()), found


@pytest.mark.long
def test_visits_stops_and_days_of_a_feature_and_of_a_query(past, screen, name):
    screen.look(ZOOM, *MIDDLE)
    until_stored(screen, past)
    page = screen.page
    upload(screen, name)
    expect(row_of(screen, name)).to_have_attribute("data-status", "ready")
    expect(row_of(screen, name)).to_have_attribute("data-shown", "true")
    screen.turn(ZOOM, *MIDDLE)
    expect(screen.hover((24.35, 59.68)).locator("h3")).to_have_text("The Square")
    page.mouse.click(*screen.pixel(24.35, 59.68))
    page.get_by_role("button", name="Report", exact=True).click()
    expect(page.locator("#report-feature")).to_contain_text("The Square, of Parks")
    set_up(screen, past, "feature", "visits")
    make(screen)
    expect(summary(screen)).to_contain_text("2 visits of 1 object")
    expect(cells(screen, 1).nth(5)).to_have_text("entry")
    expect(cells(screen, 2).nth(5)).to_have_text("gap")

    again(screen)
    choose(screen, "report", "stops")
    make(screen)
    expect(summary(screen)).to_contain_text("1 stop of 1 object")
    expect(cells(screen, 1).nth(3)).to_contain_text("h")
    expect(cells(screen, 1).nth(4)).to_have_text("59.6500° N, 24.4000° E")

    screen.tab("Queries")
    screen.draw(WEST, SOUTH, EAST, NORTH)
    screen.save("Here")
    expect(screen.query("Here").locator(".pill")).to_have_text("running")
    set_up(screen, past, "query", "days")
    page.locator("#report-query").select_option(label="Here")
    make(screen)
    expect(summary(screen)).to_contain_text("4 rows of 2 objects")
    expect(cells(screen, 1).first).to_have_text(f"{FIRST_DAY:%Y-%m-%d}")


def test_what_is_wrong_is_said_where_it_is_asked_and_a_small_screen_is_enough(past, screen_of, user):
    screen = screen_of(user, viewport={"width": 390, "height": 844}, has_touch=True)
    screen.look(ZOOM, *MIDDLE)
    until_stored(screen, past)
    page = screen.page
    set_up(screen, past, "everywhere")
    fill(screen, "to", f"{FIRST_DAY - timedelta(days=1):%Y-%m-%d}T00:00:00")
    make(screen)
    expect(page.locator("#report-error-span")).to_contain_text("must not be later than the end; got")
    fill(screen, "from", f"{FIRST_DAY - timedelta(days=500):%Y-%m-%d}T00:00:00")
    make(screen)
    expect(page.locator("#report-error-form")).to_contain_text("a report must span at most 400 days; got 499")
    screen.faults[:] = [fault for fault in screen.faults if "400" not in fault]  # the browser tells of the status
    fill(screen, "from", f"{FIRST_DAY - timedelta(days=20):%Y-%m-%d}T00:00:00")
    make(screen)
    expect(summary(screen)).to_have_text("Nothing was there in this time.")
    expect(page.locator("#report-csv")).to_be_hidden()
    again(screen)
    fill(screen, "to", f"{FIRST_DAY + timedelta(days=3):%Y-%m-%d}T23:00:00")
    page.locator("#report-form [name=to]").focus()
    page.keyboard.press("Enter")
    expect(summary(screen)).to_contain_text("3 objects")
    expect(summary(screen)).to_be_in_viewport()
    expect_room_for_a_finger(cells(screen, 1).first.get_by_role("button"))
    expect_room_for_a_finger(page.get_by_role("columnheader", name="Dwell").get_by_role("button"))
    expect_no_sideways(page)

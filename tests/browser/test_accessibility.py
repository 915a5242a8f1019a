"""axe-core finds nothing wrong with any state of the page: roles, names, contrast, order, in both themes."""

import json
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import window
from tests.browser.screen import unfold

pytestmark = [pytest.mark.browser, pytest.mark.spark]
AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
# Only what is wrong, in a line each: the rule, and the element.
CHECK = """async ([part, runOnly]) => {
  const {violations} = await axe.run(part, {resultTypes: ["violations"], ...(runOnly && {runOnly})});
  return violations.flatMap(({id, nodes}) => nodes.map((node) =>
    `${id}: ${node.html.slice(0, 120)} ${node.any.map((check) => check.message).join("; ").slice(0, 200)}`));
}"""
# What a theme may change.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
SETTLED_S = 60
HERE = (24.4, 59.7)
BOX = {"lo": [24.2, 59.6], "hi": [24.8, 59.8]}
AREA = {"type": "Polygon", "coordinates": [[[24.3, 59.6], [24.5, 59.6], [24.5, 59.7], [24.3, 59.6]]]}


def wrong(page, part="html"):
    """Return what axe-core finds wrong with a part of the page, and not only while the page is changing."""
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(f"() => {{ {AXE.read_text()} }}")  # past the content security policy
    until_s = time.monotonic() + SETTLED_S
    while (found := _wrong_now(page, part)) and time.monotonic() < until_s:
        pass
    return found


def _wrong_now(page, part):
    found = page.evaluate(CHECK, [part, None])
    page.emulate_media(color_scheme="dark")
    found += [f"dark: {fault}" for fault in page.evaluate(CHECK, [part, OF_COLOURS])]
    page.emulate_media(color_scheme="light")
    return found


@pytest.fixture
def visitor(chromium):
    """A window in which nobody has logged in."""
    context = window(chromium)
    yield context.new_page()
    context.close()


@pytest.mark.long
def test_before_a_log_in(visitor, live):
    found = {}
    visitor.goto(f"{live.base_url}/login/once/spent/")
    found["a spent link"] = wrong(visitor)
    visitor.goto(f"{live.base_url}/login/")
    found["log in"] = wrong(visitor)
    for _ in range(5):
        visitor.get_by_label("User name").fill("somebody who guesses")
        visitor.get_by_label("Password").fill("wrong")
        visitor.get_by_role("button", name="Log in").click()
    visitor.get_by_text("Too many attempts").wait_for()
    found["too many attempts"] = wrong(visitor)
    assert not any(found.values()), found


@pytest.fixture
def layer(live, tmp_path):
    """The name of an imported layer."""
    path = tmp_path / "areas.geojson"
    feature = {"type": "Feature", "geometry": AREA, "properties": {"key": "a"}}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    live.run("import_layer", str(path), "areas", "key")
    yield "areas"
    live.run("drop_layer", "areas")


@pytest.mark.long
def test_the_map_of_a_new_user(screen, feed, layer):
    feed.put(anna=HERE)
    screen.look(9, *HERE)
    page, found = screen.page, {}
    assert screen.painted(HERE, "ship")
    expect(page.locator(f"[data-layer={layer}]")).to_have_attribute("data-status", "ready")
    for tab in ("Events", "Incidents", "Layers", "History", "Queries"):
        screen.tab(tab)
        found[tab] = wrong(page)

    page.get_by_role("button", name="New query").click()
    for report in ("inside", "around", "nearest", "join"):
        page.locator(f"#query-form [name=report][value={report}]").check(force=True)
        unfold(page, "#query-form details")
        page.get_by_role("button", name="Save").click()  # the form tells what is missing
        found[f"form of a query, {report}"] = wrong(page, "#query-form")
    screen.field("partner").select_option(f"stream:{feed.name}")
    for when, first in {"window": "windowS", "interval": "beforeS", "encounter": "forMin"}.items():
        screen.field("when").select_option(when)
        screen.field(first).fill("")
        page.get_by_role("button", name="Save").click()
        found[f"form of a join over event time, {when}"] = wrong(page, "#query-form")
    page.keyboard.press("Escape")
    expect(page.locator("#query-form")).to_be_hidden()

    search = page.get_by_role("combobox", name="Find an object")
    search.fill("no object has this name")
    page.get_by_text("Nothing was found").wait_for()
    found["nothing found"] = wrong(page, "header")
    search.fill("anna")
    expect(page.get_by_role("option").first).to_contain_text("MS Anna")
    found["objects found"] = wrong(page, "header")
    page.keyboard.press("Enter")
    expect(page.locator("#object-title")).to_have_text("MS Anna")
    found["a selected object"] = wrong(page)
    page.keyboard.press("?")
    page.locator("#help").wait_for()
    found["help"] = wrong(page)
    page.keyboard.press("Escape")
    page.locator(".user summary").click()
    found["menu of the user"] = wrong(page, "header")
    page.keyboard.press("Escape")
    expect(screen.menu(HERE)).to_be_visible()
    found["menu of an object"] = wrong(page)
    assert not any(found.values()), found


@pytest.mark.long
def test_the_table_of_objects(screen, feed):
    feed.put(anna=HERE, berta=(24.5, 59.7))
    screen.look(9, *HERE)
    page, found = screen.page, {}
    assert screen.painted(HERE, "ship")
    page.keyboard.press("o")
    rows = page.locator(".table-body .table-row:visible")
    expect(rows).to_have_count(2)
    rows.first.get_by_role("button").click()
    page.get_by_role("textbox", name="Filter Key").fill("<")
    page.locator("#table-grid").focus()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    found["a table"] = wrong(page)
    for menu in ("Columns", "Watch list"):
        page.locator(".table-menu summary", has_text=menu).click()
        found[menu] = wrong(page, "#table")
        page.keyboard.press("Escape")
    page.locator("#table-source").select_option("watched")
    page.locator("#table-search").fill("nothing")
    expect(rows).to_have_count(0)
    found["no rows"] = wrong(page)
    page.set_viewport_size({"width": 390, "height": 780})
    found["a narrow screen"] = wrong(page, "#table")
    assert not any(found.values()), found


@pytest.fixture
def queries(live, feed, user):
    """An example of the demonstration and one query of each kind, about ships of which one is in all answers."""
    feed.put(anna=HERE, berta=(24.5, 59.7), carla=(25.0, 59.7))
    live.token(user)
    around = {"stream": feed.name, "around": {"key": "anna"}}
    count = {"function": "count", "thresholds": [{"above": 0}]}
    plans = (
        {"stream": feed.name, "compare": BOX},
        around | {"kind": "knn", "k": 10},
        around | {"around": {"key": "anna", "radius": 10_000}, "aggregate": count},
    )
    example = live.run("add_example", "Ships of the example", plans[0])
    for plan in plans:
        live.run("add_queries", user, plan, 1)
    live.run("reconcile")
    yield len(plans) + 1
    live.run("forget_query", example)


@pytest.mark.long
def test_queries_with_their_answers_and_events(screen, feed, queries):
    screen.look(9, *HERE)
    page, found = screen.page, {}
    cards = page.locator(".query")
    expect(cards.locator(".pill[data-status=running]")).to_have_count(queries)
    expect(cards.locator(".query-count")).to_have_text(["2", "2", "2", "1"])
    found["cards"] = wrong(page)
    for card in range(queries):
        cards.nth(card).locator(".query-main").click()
        cards.nth(card).locator(".roles > summary").click()
    expect(page.locator(".neighbour")).to_have_count(2)
    expect(page.locator(".roles dd", has_text="partition")).to_have_count(2)
    found["opened cards"] = wrong(page)

    for place, count in (((25.1, 59.7), "1"), ((24.5, 59.7), "2")):
        feed.put(berta=place)
        expect(cards.locator(".query-count").first).to_have_text(count)
    screen.tab("Events")
    groups = page.locator("#event-list .event[aria-expanded]")
    expect(groups).not_to_have_count(0)
    groups.first.click()
    page.locator("#event-pause").click()
    found["groups of events"] = wrong(page)

    screen.tab("Queries")
    page.get_by_role("button", name="Delete", exact=True).first.click()
    page.locator("#confirm").wait_for()
    found["dialog before a query is deleted"] = wrong(page)
    page.locator("#confirm").get_by_text("Keep").click()
    page.get_by_role("button", name="Edit", exact=True).first.click()
    expect(screen.field("west")).to_have_value("24.2")
    found["form of a saved query"] = wrong(page)
    assert not any(found.values()), found

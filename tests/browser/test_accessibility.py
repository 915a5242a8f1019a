"""axe-core finds nothing wrong with the page: roles, names, contrast, order, in both themes."""

from pathlib import Path

import pytest

from tests.webapp.site import Site

pytestmark = pytest.mark.browser
AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
# Only what is wrong, in a line each: the rule, and the element.
CHECK = """async () => {
  const {violations} = await axe.run(document, {resultTypes: ["violations"]});
  return violations.flatMap(({id, nodes}) => nodes.map((node) =>
    `${id}: ${node.html.slice(0, 120)} ${node.any.map((check) => check.message).join("; ").slice(0, 200)}`));
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory, redis_server):
    """Run a web server with the demonstration's streams."""
    with Site(tmp_path_factory.mktemp("site"), redis_server) as running:
        running.manage("seed_demo")
        yield running


@pytest.fixture(params=["light", "dark"])
def page(request, chromium, site):
    """A window in one of the themes, without a login."""
    context = chromium.new_context(
        viewport={"width": 1280, "height": 1000}, color_scheme=request.param, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


@pytest.fixture
def map_page(page, site):
    """The map of a user who has logged in."""
    assert page.context.request.get(site.login_link(), max_redirects=0).status == 302
    page.goto(site.place.address)
    page.locator("#map .leaflet-tile-loaded").first.wait_for(timeout=60_000)
    return page


def wrong(page):
    """Return what axe-core finds wrong; it is put into the page past its content security policy."""
    page.evaluate(f"() => {{ if (!window.axe) {{ {AXE.read_text()} }} }}")
    return page.evaluate(CHECK)


def test_the_log_in_page(page, site, request):
    page.goto(f"{site.place.address}/login/")
    assert wrong(page) == []
    for _ in range(5):
        page.get_by_label("User name").fill(f"somebody of {request.node.name}")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Log in").click()
    page.get_by_text("Too many attempts").wait_for()
    assert wrong(page) == []


def test_a_spent_link(page, site):
    page.goto(f"{site.place.address}/login/once/spent/")
    assert wrong(page) == []


def test_the_tabs_of_the_map(map_page):
    faults = {}
    for tab in ("Queries", "Events", "Layers", "History"):
        map_page.get_by_role("tab", name=tab).click()
        faults[tab] = wrong(map_page)
    assert not any(faults.values()), faults


@pytest.mark.parametrize("report", ["inside", "around", "nearest", "join"])
def test_the_form_of_a_query(report, map_page):
    map_page.get_by_role("button", name="New query").click()
    map_page.locator(f"#query-form [name=report][value={report}]").check(force=True)
    for summary in map_page.locator("#query-form summary").all():
        summary.click()
    map_page.get_by_role("button", name="Save").click()  # the form tells what is missing
    assert wrong(map_page) == []


def test_a_search_that_finds_nothing(map_page):
    map_page.get_by_role("combobox", name="Find an object").fill("no object has this name")
    map_page.get_by_text("Nothing on the map has this name.").wait_for()
    assert wrong(map_page) == []


def test_dialogs_and_menus(map_page):
    map_page.keyboard.press("?")
    map_page.locator("#help").wait_for()
    assert wrong(map_page) == []
    map_page.keyboard.press("Escape")
    map_page.locator(".user summary").click()
    assert wrong(map_page) == []
    map_page.keyboard.press("Escape")
    map_page.locator("#map").click(button="right", position={"x": 300, "y": 300})
    assert wrong(map_page) == []

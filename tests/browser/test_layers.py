"""Layers in the page: uploaded, listed, drawn, edited, removed."""

import json
import re
from itertools import count

import pytest
from playwright.sync_api import expect

from tests.layers.files import frame

pytestmark = [pytest.mark.browser, pytest.mark.spark]

ZOOM, MIDDLE = 9, (24.5, 59.7)
SQUARE = [[24.3, 59.6], [24.5, 59.6], [24.5, 59.7], [24.3, 59.7], [24.3, 59.6]]
IN_SQUARE, NORTH_WEST, AWAY = (24.4, 59.65), (24.3, 59.7), (24.8, 59.8)
_numbers = count(1)


def collection(*features):
    return json.dumps({"type": "FeatureCollection", "features": features}).encode()


def feature(key, geometry, **properties):
    return {"type": "Feature", "id": key, "geometry": geometry, "properties": properties}


PARKS = collection(
    feature("square", {"type": "Polygon", "coordinates": [SQUARE]}, name="The Square", kind="park"),
    feature("nowhere", None, name="Nowhere"),
)


@pytest.fixture
def name():
    """The name of a layer that no other test has."""
    return f"parks{next(_numbers)}"


def upload(screen, name, content=PARKS, title="Parks"):
    """Choose a file, name the layer and import it."""
    screen.tab("Layers")
    screen.page.set_input_files(
        "#layer-form [name=file]", {"name": f"{name}.geojson", "mimeType": "application/json", "buffer": content}
    )
    expect(screen.page.locator("#layer-name")).to_have_value(name)
    screen.page.locator("#layer-title").fill(title)
    screen.page.locator("#layer-save").click()


def row(screen, name):
    """Return a layer's row in the list."""
    return screen.page.locator(f"[data-layer={name}]")


def act(screen, name, action):
    """Choose from the menu of a layer."""
    screen.choose(row(screen, name), action)


@pytest.fixture
def parks(screen, name):
    """A window that shows a layer with one square, which it uploaded."""
    screen.look(ZOOM, *MIDDLE)
    upload(screen, name)
    expect(row(screen, name)).to_have_attribute("data-status", "ready")
    expect(row(screen, name)).to_have_attribute("data-shown", "true")
    screen.turn(ZOOM, *MIDDLE)
    expect(screen.hover(IN_SQUARE).locator("h3")).to_have_text("The Square")
    return screen


def test_an_uploaded_layer_is_listed_with_its_problems_drawn_and_removed(parks, name):
    expect(row(parks, name).locator(".query-about")).to_have_text(f"{name} \u00b7 1 polygon \u00b7 version 1")
    expect(row(parks, name).locator(".problems summary")).to_contain_text("1 row was")
    row(parks, name).locator(".problems summary").click()
    expect(row(parks, name).locator(".problems li")).to_contain_text("Row 2")
    expect(parks.hover(IN_SQUARE)).to_contain_text("park")
    expect(parks.hover(AWAY)).to_be_hidden()
    row(parks, name).locator(".swatch").click()
    expect(parks.hover(IN_SQUARE)).to_be_hidden()
    act(parks, name, "Delete")
    parks.page.get_by_role("button", name="Keep").click()
    expect(row(parks, name)).to_have_count(1)
    act(parks, name, "Delete")
    parks.page.locator("#confirm-yes").click()
    expect(row(parks, name)).to_have_count(0)


@pytest.mark.long
def test_a_layer_stays_shown_or_hidden_when_the_page_is_opened_again(parks, name):
    parks.page.reload()
    parks.live()
    expect(parks.hover(IN_SQUARE).locator("h3")).to_have_text("The Square")
    parks.tab("Layers")
    row(parks, name).locator(".swatch").click()
    expect(row(parks, name)).to_have_attribute("data-shown", "false")
    parks.page.reload()
    parks.live()
    parks.tab("Layers")
    expect(row(parks, name)).to_have_attribute("data-shown", "false")
    expect(parks.hover(IN_SQUARE)).to_be_hidden()


def test_a_file_that_is_no_layer_is_refused_in_words(screen, name):
    screen.look(ZOOM, *MIDDLE)
    upload(screen, name, b'{"type": "FeatureCollection", "features": [')
    expect(row(screen, name)).to_have_attribute("data-status", "failed")
    expect(row(screen, name).locator(".field-error")).to_be_visible()
    expect(row(screen, name).locator(".swatch")).to_be_disabled()
    screen.page.set_input_files(
        "#layer-form [name=file]", {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"words"}
    )
    screen.page.locator("#layer-save").click()
    expect(screen.page.locator("#layer-error")).to_contain_text("txt")
    assert all("400" in fault for fault in screen.faults)  # Chromium writes the refusal to the console
    screen.faults.clear()
    act(screen, name, "Delete")
    screen.page.locator("#confirm-yes").click()
    expect(row(screen, name)).to_have_count(0)


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(screen, name):
    # Before the page's modules run, which read it.
    screen.page.add_init_script("""document.addEventListener("readystatechange", () => {
      const page = document.getElementById("page");
      if (page) page.textContent = JSON.stringify({...JSON.parse(page.textContent), upload_bytes: 9});
    })""")
    screen.look(ZOOM, *MIDDLE)
    upload(screen, name)
    expect(screen.page.locator("#layer-error")).to_contain_text("A file may have at most 9 bytes; this one has")
    expect(row(screen, name)).to_have_count(0)


def test_a_file_that_is_dropped_onto_the_map_is_proposed_as_a_layer(screen):
    screen.look(ZOOM, *MIDDLE)
    transfer = screen.page.evaluate_handle(
        """content => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([content], "City Roads.geojson"));
          return transfer;
        }""",
        PARKS.decode(),
    )
    screen.page.dispatch_event("#map", "dragenter", {"dataTransfer": transfer})
    expect(screen.page.locator(".drop-hint")).to_be_visible()
    screen.page.dispatch_event("#map", "drop", {"dataTransfer": transfer})
    expect(screen.page.locator(".drop-hint")).to_be_hidden()
    expect(screen.page.locator("#layer-name")).to_have_value("city_roads")
    expect(screen.page.locator("#layer-title")).to_have_value("City Roads")
    expect(screen.page.locator("#layer-preview")).to_contain_text("The Square")
    screen.page.locator("#layer-cancel").click()
    expect(screen.page.locator("#layer-form")).to_be_hidden()


def click(screen, place):
    screen.page.mouse.click(*screen.pixel(*place))


def test_a_corner_is_dragged_and_saved_as_a_new_version(parks, name):
    click(parks, IN_SQUARE)
    expect(parks.page.locator("#feature-title")).to_have_text("The Square")
    parks.page.locator("#feature-edit").click()
    expect(parks.page.locator(".vertex:not(.middle)")).to_have_count(4)
    expect(parks.page.locator(".vertex.middle")).to_have_count(4)
    parks.drag(NORTH_WEST, (24.3, 59.85))
    parks.page.locator("#feature-save").click()
    expect(row(parks, name).locator(".query-about")).to_contain_text("version 2")
    expect(parks.page.locator(".vertex")).to_have_count(0)
    expect(parks.hover((24.32, 59.75)).locator("h3")).to_have_text("The Square")


@pytest.mark.long
def test_somebody_elses_version_is_explained_and_can_be_built_upon(parks, name, screen_of, user):
    other = screen_of(user)
    other.look(ZOOM, *MIDDLE)
    other.tab("Layers")
    row(other, name).locator(".swatch").click()
    expect(other.hover(IN_SQUARE).locator("h3")).to_have_text("The Square")
    for screen in (parks, other):
        click(screen, IN_SQUARE)
        screen.page.locator("#feature-edit").click()
        expect(screen.page.locator(".vertex").first).to_be_visible()
    parks.page.locator("#feature-name").fill("Mine")
    parks.page.locator("#feature-save").click()
    expect(parks.page.locator("#feature-title")).to_have_text("Mine")
    other.page.locator("#feature-name").fill("Theirs")
    other.page.locator("#feature-save").click()
    expect(other.page.locator("#feature-error")).to_contain_text("saved version 2 first")
    assert all("409" in fault for fault in other.faults)
    other.faults.clear()
    other.page.locator("#feature-save").click()
    expect(row(parks, name).locator(".query-about")).to_contain_text("version 3")
    expect(parks.hover(IN_SQUARE).locator("h3")).to_have_text("Theirs")


@pytest.mark.long
def test_a_join_with_a_layer_is_begun_from_the_list(parks, name):
    act(parks, name, "Join")
    expect(parks.field("partner")).to_have_value(f"layer:{name}")
    parks.field("predicate").select_option("dwithin")
    parks.field("distance").fill("5")
    parks.field("partnerWhere").fill("kind = 'park'")
    plan = parks.plan()
    assert plan["join"] == {"layer": name, "predicate": "dwithin", "distance": 5, "where": "kind = 'park'"}
    assert "area" not in plan
    parks.page.get_by_text("In an area").click()
    parks.page.get_by_role("button", name="Draw", exact=True).click()
    parks.drag((24.2, 59.8), (24.8, 59.6))
    expect(parks.field("west")).not_to_have_value("")
    assert parks.plan()["area"]["lo"][0] == pytest.approx(24.2, abs=0.02)
    parks.field("distance").fill("-1")
    parks.save("Near parks")
    expect(parks.page.locator("#error-distance")).to_be_visible()
    parks.page.keyboard.press("Escape")
    expect(parks.page.locator("#query-form")).to_be_hidden()


@pytest.mark.long
def test_a_join_says_on_its_card_that_it_waits_while_its_layer_is_gone(feed, parks, name):
    act(parks, name, "Join")
    parks.field("name").fill("In parks")
    parks.field("stream").select_option(feed.name)
    parks.save()
    parks.tab("Queries")
    parks.expect_query("In parks", "running", "0")
    parks.tab("Layers")
    act(parks, name, "Delete")
    parks.page.locator("#confirm-yes").click()
    parks.tab("Queries")
    parks.expect_query("In parks", "waiting")
    expect(parks.query("In parks")).to_contain_text(f"waits for the layer '{name}', which is not there")
    upload(parks, name)
    parks.tab("Queries")
    parks.expect_query("In parks", "running", "0")


@pytest.mark.long
def test_counts_of_pairs_are_explained_written_onto_features_and_follow_the_objects(feed, parks, name):
    feed.put(anna=(24.35, 59.62), berta=AWAY)
    act(parks, name, "Colour by count")
    legend = parks.page.locator(f"[data-legend={name}]")
    expect(legend).to_contain_text("nothing to count")
    legend.get_by_role("button", name="Join with a stream").click()
    expect(parks.field("partner")).to_have_value(f"layer:{name}")
    parks.field("stream").select_option(feed.name)
    parks.save("In parks")
    parks.expect_query("In parks", "running", "1")
    expect(legend.locator("li")).to_have_text(["0", "1"])
    expect(legend).to_contain_text("In parks")
    expect(parks.page.locator(".count-label")).to_have_text("1")
    expect(parks.hover(IN_SQUARE)).to_contain_text("1 now")
    feed.put(berta=(24.45, 59.68))
    expect(parks.page.locator("#tooltip")).to_contain_text("2 now")  # the pointer has not moved
    expect(parks.page.locator(".count-label")).to_have_text("2")
    expect(legend.locator("li")).to_have_text(["0", "1", "2"])
    parks.tab("Layers")
    expect(row(parks, name)).to_contain_text("2 pairs now, with 1 feature")
    legend.get_by_role("button", name="Stop colouring by count").click()
    expect(parks.page.locator(".count-label")).to_have_count(0)
    expect(legend).to_have_count(0)


def test_a_join_is_begun_without_drawing(parks, name):
    parks.page.keyboard.press("j")
    expect(parks.field("partner")).to_be_visible()
    assert "area" not in parks.plan()
    parks.page.keyboard.press("Escape")
    parks.tab("Queries")
    parks.page.get_by_role("button", name="Join with a layer").click()
    expect(parks.page.locator("#box-fields")).to_be_hidden()
    parks.page.keyboard.press("Escape")


@pytest.mark.long
def test_a_polygon_is_drawn_and_deleted_again(parks, name):
    act(parks, name, "Add polygon")
    for place in ((24.7, 59.75), (24.9, 59.75), (24.9, 59.85)):
        click(parks, place)
    parks.page.locator("#feature-finish").click()
    parks.page.locator("#feature-name").fill("Triangle")
    parks.page.locator("#feature-save").click()
    expect(row(parks, name).locator(".query-about")).to_contain_text("2 polygons \u00b7 version 2")
    expect(parks.hover((24.85, 59.78)).locator("h3")).to_have_text("Triangle")
    parks.page.locator("#feature-delete").click()
    parks.page.locator("#confirm-yes").click()
    expect(row(parks, name).locator(".query-about")).to_contain_text("1 polygon \u00b7 version 3")
    expect(parks.hover((24.85, 59.78))).to_be_hidden()
    act(parks, name, "Add point")
    click(parks, AWAY)
    parks.page.locator("#feature-save").click()
    expect(row(parks, name).locator(".query-about")).to_contain_text(re.compile("2 features .* version 4"))


def offered(screen, filename, content):
    """Choose a file, whose form is then open."""
    screen.tab("Layers")
    screen.page.set_input_files(
        "#layer-form [name=file]", {"name": filename, "mimeType": "application/octet-stream", "buffer": content}
    )


def test_the_form_asks_for_the_table_and_imports_all_as_one_layer(screen, name, tmp_path):
    for table in ("areas", "ports"):
        frame().to_file(tmp_path / "a.gpkg", layer=table, driver="GPKG")
    screen.look(ZOOM, *MIDDLE)
    offered(screen, f"{name}.gpkg", (tmp_path / "a.gpkg").read_bytes())
    page = screen.page
    expect(page.locator("#layer-table option")).to_have_text(["areas (3)", "ports (3)", "all as one layer"])
    expect(page.locator("#layer-preview th")).to_have_text(["title", "lanes"])
    expect(page.locator("#layer-crs")).to_be_hidden()
    page.locator("#layer-table").select_option("*")
    page.locator("#layer-key").select_option("lanes")
    page.locator("#layer-save").click()
    expect(row(screen, name).locator(".query-about")).to_contain_text("6 ")


def test_the_form_asks_for_the_encoding_with_a_preview(screen, name):
    screen.look(ZOOM, *MIDDLE)
    square = {"type": "Polygon", "coordinates": [SQUARE]}
    features = json.loads(collection(feature("a", square, name="Привет")))
    offered(screen, f"{name}.geojson", json.dumps(features, ensure_ascii=False).encode("cp1251"))
    page = screen.page
    expect(page.locator("#layer-looking")).to_contain_text("its texts were read as Windows-1252")
    expect(page.locator("#layer-preview")).to_contain_text("Ïðèâåò")
    page.locator("#layer-encoding").select_option("cp1251")
    expect(page.locator("#layer-preview")).to_contain_text("Привет")
    page.locator("#layer-save").click()
    expect(row(screen, name)).to_have_attribute("data-shown", "true")
    screen.turn(ZOOM, *MIDDLE)
    expect(screen.hover(IN_SQUARE).locator("h3")).to_have_text("Привет")


def test_the_form_asks_for_a_reference_system_that_a_file_lacks(screen, name, tmp_path):
    with pytest.warns(UserWarning, match="'crs' was not provided"):
        flat = frame().to_crs(3067).set_crs(None, allow_override=True)
        flat.to_file(tmp_path / "a.gpkg", driver="GPKG")
    screen.look(ZOOM, *MIDDLE)
    offered(screen, f"{name}.gpkg", (tmp_path / "a.gpkg").read_bytes())
    expect(screen.page.locator("#layer-crs")).to_be_visible()
    screen.page.locator("#layer-crs").fill("EPSG:3067")
    screen.page.locator("#layer-save").click()
    expect(row(screen, name)).to_have_attribute("data-status", "ready")

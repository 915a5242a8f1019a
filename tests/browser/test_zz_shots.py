import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.spark]
HERE, THERE, AWAY = (24.4, 59.7), (24.6, 59.7), (24.6, 59.85)


def test_shots(screen, feed):
    page = screen.page
    feed.put(anna=HERE, berta=THERE)
    screen.look(10, 24.5, 59.7)
    screen.draw(24.2, 59.6, 24.8, 59.9)
    page.get_by_text("Joined", exact=True).click()
    screen.field("partner").select_option(f"stream:{feed.name}")
    screen.field("predicate").select_option("dwithin")
    screen.field("distance").fill("14000")
    screen.field("when").select_option("encounter")
    screen.field("forMin").fill("0.02")
    page.locator("#encounter-fields").scroll_into_view_if_needed()
    page.screenshot(path="/tmp/enc_shots/form.png")
    page.locator("#late-fields summary").click()
    screen.field("latenessS").fill("0")
    screen.field("idleS").fill("1")
    screen.save("Meetings")
    card = screen.query("Meetings")
    with feed.repeated(anna=HERE, berta=THERE):
        expect(card.locator(".query-count")).to_have_text("1", timeout=40_000)
    with feed.repeated(anna=(24.42, 59.66), berta=(24.6, 59.72)):
        page.wait_for_timeout(2500)
        page.screenshot(path="/tmp/enc_shots/lasting.png")
        page.emulate_media(color_scheme="dark")
        page.locator("#theme").click()
        page.wait_for_timeout(800)
        page.screenshot(path="/tmp/enc_shots/dark.png")
        page.set_viewport_size({"width": 390, "height": 844})
        page.wait_for_timeout(800)
        page.screenshot(path="/tmp/enc_shots/phone.png")
        page.set_viewport_size({"width": 1200, "height": 800})
        page.locator("#theme").click()
    with feed.repeated(anna=HERE, berta=AWAY):
        expect(card.locator(".query-count")).to_have_text("0", timeout=40_000)
    screen.tab("Events")
    event = screen.events().first
    event.click()
    page.screenshot(path="/tmp/enc_shots/events.png")
    page.locator(".event-single").first.click()
    page.wait_for_timeout(2500)
    page.screenshot(path="/tmp/enc_shots/picked.png")
    screen.tab("Layers")
    page.locator(".legend").scroll_into_view_if_needed()
    page.screenshot(path="/tmp/enc_shots/legend.png")

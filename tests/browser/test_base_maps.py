"""Base maps: the hint where the built-in one is empty, and maps that an administrator adds."""

import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from tests.webapp.test_maps import mbtiles, png

pytestmark = [pytest.mark.browser, pytest.mark.spark]
STREETS = (13, 24.9, 60.1)


class Tiles(BaseHTTPRequestHandler):
    """A tile server; it answers every question with one image."""

    def do_GET(self):
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        self.wfile.write(png(90))

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server():
    """The address of a tile server on this machine."""
    with closing(ThreadingHTTPServer(("127.0.0.1", 0), Tiles)) as serving:
        serving.close = serving.server_close
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def add(screen, **fields):
    """Add a base map in the admin, by the hint's link."""
    screen.look(*STREETS)
    screen.page.locator("#base-hint a").click()
    for name, value in fields.items():
        field = screen.page.locator(f"[name={name}]")
        field.select_option(value) if name == "kind" else field.fill(value)
    screen.page.locator("[name=_save]").click()
    expect(screen.page.locator(".messagelist")).to_contain_text("was added successfully")


def shows(screen, name, address):
    """Choose a base map, and wait for an image of it."""
    screen.look(*STREETS)
    screen.tab("Layers")
    screen.page.get_by_label(name, exact=True).check()
    expect(screen.page.locator(f"img.leaflet-tile-loaded[src^='{address}']").first).to_be_attached()
    expect(screen.page.locator("#base-hint")).to_be_hidden()


@pytest.mark.long
def test_a_tile_server_is_added_by_the_hint_and_remembered(screen_of, user, server):
    screen = screen_of(user, staff=True)
    add(screen, name="Streets", address=f"{server}/{{z}}/{{x}}/{{y}}.png", attribution="Streets of <b>ours</b>")
    shows(screen, "Streets", server)
    expect(screen.page.locator(".leaflet-control-attribution")).to_contain_text("Streets of <b>ours</b>")
    screen.look(*STREETS)
    screen.tab("Layers")
    expect(screen.page.get_by_label("Streets", exact=True)).to_be_checked()
    assert screen.faults
    assert all(fault.startswith(f"request to {server}/13/") for fault in screen.faults)
    screen.faults.clear()


@pytest.mark.long
def test_a_file_of_tiles_is_shown_and_users_are_told_whom_to_ask_for_one(screen_of, user, live):
    folder = live.home / "maps"
    folder.mkdir(exist_ok=True)
    screen = screen_of(user, staff=True)
    tiles = {(13, x, y): png(120) for x in range(4655, 4670) for y in range(2365, 2385)}
    add(screen, name="Town", kind="file", address=mbtiles(folder, tiles=tiles))
    shows(screen, "Town", "/maps/")
    other = screen_of(f"{user}b")
    other.look(*STREETS)
    expect(other.page.locator("#base-hint")).to_contain_text("ask an administrator to add one")
    other.turn(9, *STREETS[1:])
    expect(other.page.locator("#base-hint")).to_be_hidden()

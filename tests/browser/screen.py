"""What a user does with the page, and sees on it."""

import contextlib
import json
import math
import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import FloatRect, Locator, Page, expect

from bench.live import PATIENCE_S, wait_for

FINGER_PX, TILE_PX = 44, 256
CONNECTED = re.compile("^(live|slow|down)$")
TURN = """(hash) => new Promise((turned) => {
  if (location.hash === hash) turned();
  addEventListener("hashchange", () => turned(), {once: true});
  location.hash = hash;
})"""
# Wait, frame by frame, until a pixel near a place has a colour, or until none has.
PAINTED = """async ({x, y, radius, wanted, present, patience}) => {
  const canvases = [...document.querySelectorAll("canvas.objects")];
  const paint = document.createElement("canvas").getContext("2d");
  paint.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(wanted).trim();
  paint.fillRect(0, 0, 1, 1);
  const [red, green, blue] = paint.getImageData(0, 0, 1, 1).data;
  const seen = () => canvases.some((canvas) => {
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    const [left, top, size] = [(x - radius - box.left) * scale, (y - radius - box.top) * scale, 2 * radius * scale];
    if (canvas.hidden || !(canvas.width > 0)) return false;
    const {data} = canvas.getContext("2d").getImageData(left, top, size, size);
    for (let i = 0; i < data.length; i += 4) {
      const far = Math.abs(data[i] - red) + Math.abs(data[i + 1] - green) + Math.abs(data[i + 2] - blue);
      if (data[i + 3] > 200 && far < 24) return true;
    }
    return false;
  });
  const end = performance.now() + patience;
  while (seen() !== present) {
    if (performance.now() > end) return false;
    await new Promise(requestAnimationFrame);
  }
  return true;
}"""


class Screen:
    """The map page in one browser window.

    Parameters
    ----------
    page : Page
    base_url : str

    Attributes
    ----------
    faults : list of str
        Requests to other hosts, errors on the console, exceptions that nobody caught.
    """

    def __init__(self, page: Page, base_url: str) -> None:
        self.page, self.base_url = page, base_url
        self.faults: list[str] = []
        page.on("request", self._requested)
        page.on("websocket", self._requested)
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _requested(self, request):
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.netloc != urlsplit(self.base_url).netloc:
            self.faults.append(f"request to {request.url}")

    def _said(self, message):
        if message.type == "error":
            self.faults.append(f"{message.text} ({message.location['url']})")

    # The map.

    def look(self, zoom: int, lon: float, lat: float) -> None:
        """Open the map at a view and wait for the connection."""
        self.zoom, self.lon, self.lat = zoom, lon, lat
        self.page.goto("about:blank")
        self.page.goto(f"{self.base_url}/#{zoom}/{lat}/{lon}")
        self.live()

    def listen(self) -> None:
        """Note the frequencies of all tones, in Hz; call it before the page is opened."""
        self.page.add_init_script("""
            const start = OscillatorNode.prototype.start;
            window.tones = [];
            OscillatorNode.prototype.start = function (at) {
              window.tones.push(this.frequency.value);
              return start.call(this, at);
            };""")

    def expect_critical_sound(self) -> None:
        """Expect that the sound of critical incidents, four high tones, was played once, and no other."""
        self.page.wait_for_function("window.tones.length === 4 && window.tones.every((tone) => tone > 800)")

    def turn(self, zoom: int, lon: float, lat: float) -> None:
        """Turn the open map to a view by its address, and wait until it is there."""
        self.zoom, self.lon, self.lat = zoom, lon, lat
        self.page.evaluate(TURN, f"#{zoom}/{lat}/{lon}")
        expect(self.page.locator(".leaflet-pan-anim")).to_have_count(0)

    def follow(self) -> None:
        """Take over the view to which the page has turned, from its address."""
        view = self.page.evaluate("location.hash.slice(1).split('&')[0].split('/').slice(0, 3).map(Number)")
        self.zoom, self.lat, self.lon = view

    def live(self) -> None:
        """Wait until the badge says that the connection is there, be the engine slow or not."""
        expect(self.page.locator("#connection")).to_have_attribute("data-state", CONNECTED)

    def pixel(self, lon: float, lat: float) -> tuple[float, float]:
        """Return where a place is in the window; Web Mercator about the middle of the map."""
        box = box_of(self.page.locator("#map"))
        scale = TILE_PX * 2**self.zoom
        across, down = _mercator(lon, lat)
        middle_across, middle_down = _mercator(self.lon, self.lat)
        return (
            box["x"] + box["width"] / 2 + (across - middle_across) * scale,
            box["y"] + box["height"] / 2 + (down - middle_down) * scale,
        )

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Drag with the mouse from a place to another."""
        self.page.mouse.move(*self.pixel(*start))
        self.page.mouse.down()
        self.page.mouse.move(*self.pixel(*end), steps=6)
        self.page.mouse.up()

    def painted(
        self,
        place: tuple[float, float],
        colour: str,
        present: bool = True,
        radius: int = 14,
        patience_s: float = PATIENCE_S,
    ) -> bool:
        """Wait until a colour of the style sheet is to be seen at a place, or no longer; return whether it came so."""
        x, y = self.pixel(*place)
        wanted = {
            "x": x,
            "y": y,
            "radius": radius,
            "wanted": f"--{colour}",
            "present": present,
            "patience": 1000 * patience_s,
        }
        return self.page.evaluate(PAINTED, wanted)

    def hover(self, place: tuple[float, float]) -> Locator:
        """Point at a place; return the tooltip."""
        x, y = self.pixel(*place)
        self.page.mouse.move(x - 60, y - 60)
        self.page.mouse.move(x, y, steps=2)
        return self.page.locator("#tooltip")

    def middle_of(self, shape: str) -> tuple[float, float]:
        """Return where the middle of something drawn is in the window."""
        box = box_of(self.page.locator(shape))
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def expect_at(self, shape: str, place: tuple[float, float], slack_px: float = 3) -> None:
        """Wait until the middle of something drawn is at a place."""
        x, y = self.pixel(*place)
        wait_for(lambda: math.dist(self.middle_of(shape), (x, y)) < slack_px, f"{shape} at {place}")

    def menu(self, place: tuple[float, float]) -> Locator:
        """Open the menu of a place with the right mouse button."""
        self.page.mouse.click(*self.pixel(*place), button="right")
        return self.page.locator("#around-menu")

    # Queries and events.

    def draw(self, west: float, south: float, east: float, north: float) -> None:
        """Begin a new query and draw its rectangle."""
        self.page.get_by_role("button", name="New query").click()
        self.drag((west, north), (east, south))
        expect(self.field("west")).not_to_have_value("")

    def field(self, name: str) -> Locator:
        """Return a field of the form."""
        return self.page.locator(f"#query-form [name={name}]")

    def expect_fields(self, **values: str) -> None:
        """Wait until fields of the form have values."""
        for name, value in values.items():
            expect(self.field(name)).to_have_value(value)

    def plan(self) -> dict[str, Any]:
        """Return the plan that the form shows; it follows each field at once."""
        return wait_for(lambda: json.loads(self.field("plan").input_value() or "null"), "a plan in the form")

    def drag_handle(self, name: str, to: str) -> None:
        """Drag a handle of the edited rectangle to where another one is: a corner or the middle of a side."""
        self.page.locator(f".handle-{name}").drag_to(self.page.locator(f".handle-{to}"), steps=6)

    def save(self, name: str | None = None) -> None:
        """Press Save, under a name if one is given."""
        if name is not None:
            self.field("name").fill(name)
        self.page.get_by_role("button", name="Save").click()

    def query(self, name: str) -> Locator:
        """Return a query's card."""
        return self.page.locator(".query").filter(has=self.page.get_by_text(name, exact=True))

    def expect_query(self, name: str, status: str, count: str = "") -> None:
        """Wait until a query has a status, and so many objects in its answer."""
        try:
            expect(self.query(name).locator(".pill")).to_have_text(status)
            expect(self.query(name).locator(".query-count")).to_have_text(count)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._anew(name)}") from None

    def _anew(self, name: str) -> str:
        """Say what the page had of all queries, and what it has when it is loaded anew: so whose fault it was."""
        cards = self.page.locator(".query")
        had = cards.all_inner_texts()
        self.page.reload()
        with contextlib.suppress(AssertionError):
            self.live()
            expect(self.query(name).locator(".query-count")).not_to_be_empty()
        return f"the page had {had}, and loaded anew it has {cards.all_inner_texts()}; faults: {self.faults}"

    def act(self, name: str, action: str) -> None:
        """Choose from the menu of a query."""
        self.choose(self.query(name), action)

    def choose(self, card: Locator, action: str) -> None:
        """Choose from the menu of a card; it opens the menu if it is closed."""
        button = card.get_by_role("button", name=action, exact=True)
        if not button.is_visible():
            card.locator(".query-main").click()
        button.click()

    def tab(self, name: str) -> None:
        """Turn to a tab of the panel."""
        self.page.get_by_role("tab", name=re.compile(f"^{name}")).click()

    def events(self) -> Locator:
        """Return the rows of the event list, newest first."""
        return self.page.locator("#event-list .event")

    def single_event(self) -> Locator:
        """Return the newest event by itself: pause the list, so that it stays, and open the group that holds it."""
        expect(self.events()).not_to_have_count(0)
        self.page.locator("#event-pause").click()
        group = self.events().first.and_(self.page.locator("[aria-expanded]"))
        if not group.count():
            return self.events().first
        group.click()
        return self.page.locator(".event-single").first


def box_of(locator: Locator) -> FloatRect:
    """Return where an element is in the window, in CSS pixels, once it is shown."""
    return wait_for(locator.bounding_box, f"the box of {locator}")


def record_values(slider: Locator) -> None:
    """Begin to record each value that a slider shows, for `recorded`."""
    slider.evaluate("""(slider) => {
      const value = () => slider.getAttribute("aria-valuenow");
      slider.values = [value()];
      new MutationObserver(() => slider.values.push(value())).observe(slider, {attributeFilter: ["aria-valuenow"]});
    }""")


def recorded(slider: Locator) -> list[str]:
    """Return the values that a slider has shown, each once in a row."""
    values: list[str] = slider.evaluate("(slider) => slider.values.filter((value, i, all) => value !== all[i - 1])")
    return values


def unfold(page: Page, parts: str) -> None:
    """Open those parts of a page that can be opened and are shown, one after the other."""
    closed = page.locator(f"{parts}:not([open]) > summary:visible")
    while closed.count():
        closed.first.click()


def expect_room_for_a_finger(locator: Locator, *sides: str) -> None:
    """Wait until an element is shown at least as large as a finger needs, of its height, or of the sides given."""
    wait_for(
        lambda: all(box_of(locator)[side] >= FINGER_PX for side in sides or ("height",)),
        lambda: f"{FINGER_PX} px for {locator}, which has {box_of(locator)}",
    )


def expect_no_sideways(page: Page) -> None:
    """Wait until the page is no wider than the window."""
    page.wait_for_function("document.documentElement.scrollWidth <= innerWidth")


def _mercator(lon, lat):
    sine = math.sin(math.radians(lat))
    return lon / 360, -math.log((1 + sine) / (1 - sine)) / (4 * math.pi)

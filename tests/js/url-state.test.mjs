// The state of the page in its address.

import assert from "node:assert/strict";
import test from "node:test";

import { Address } from "../../static/js/address.js";
import { KEYS, isStep, readAddress, writeAddress } from "../../static/js/url-state.js";

const VIEW = { zoom: 9, lat: 60, lon: 25, streams: null };
const TABLE = { source: "stream:ships", sort: null, search: "", conditions: [] };
const SOME = {
  kiosk: true,
  tab: "events",
  query: 17,
  incident: 23,
  select: { stream: "ships", key: "a/b&c" },
  follow: true,
  filter: "speed_mps > 5 AND name LIKE '%&%'",
  colour: "property:ship type",
  steps: "equal",
  trail: 15,
  vector: 10,
  theme: "dark",
  replay: { atMs: Date.UTC(2026, 10, 25, 14, 3, 22), speed: 60 },
};

test("every key of an address is read as it was written", () => {
  assert.deepEqual(Object.keys(SOME), Object.keys(KEYS)); // a new key belongs into SOME
  const address = writeAddress({
    view: { ...VIEW, streams: ["ships"] },
    table: TABLE,
    values: SOME,
    search: "?meter=1",
  });
  assert.deepEqual(readAddress(address), {
    view: { ...VIEW, streams: ["ships"] },
    table: TABLE,
    values: SOME,
    faults: [],
  });
  assert.equal(address.search, "?meter=1&kiosk=1");
});

test("the link of an alarm opens an incident, also one that is at no place", () => {
  const { values, view, faults } = readAddress({ search: "", hash: "#&tab=incidents&incident=23" });
  assert.deepEqual([values, view, faults], [{ tab: "incidents", incident: 23 }, null, []]);
});

test("usual values are left out", () => {
  const usual = Object.fromEntries(Object.entries(KEYS).map(([name, key]) => [name, key.usual]));
  assert.deepEqual(writeAddress({ view: VIEW, table: null, values: usual, search: "?kiosk=1" }), {
    search: "",
    hash: "#9/60.000/25.000",
  });
});

test("what is not understood is left out and told", () => {
  const read = (hash, search = "") => readAddress({ search, hash });
  const { values, faults, view } = read(
    "#9/60/25&tab=cellar&trail=7&colour=mood&query=x&follow=yes&select=ships&vector=5&nonsense=1&table=chair",
    "?kiosk=maybe&meter=1&utm=2",
  );
  assert.deepEqual(values, { vector: 5 });
  assert.equal(view.zoom, 9);
  const expected = [
    "kiosk=maybe",
    "utm=2",
    "table=chair",
    "tab=cellar",
    "trail=7",
    "colour=mood",
    "query=x",
    "follow=yes",
    "select=ships",
    "nonsense=1",
  ];
  assert.deepEqual(new Set(faults), new Set(expected));
  assert.deepEqual(read("#99/60/25").faults, ["99/60/25"]);
  assert.deepEqual([read("").faults, read("#panel").faults, read("#9/60/25/%E0%A4%A").faults], [[], [], []]);
});

test("a step of the history is a deliberate change, not a move of the map or a turn of the theme", () => {
  const at = (more, values = {}, table = null) => writeAddress({ view: { ...VIEW, ...more }, table, values });
  assert.equal(isStep(at({}), at({ lon: 26, zoom: 11 })), false);
  assert.equal(isStep(at({}), at({}, { theme: "dark" })), false);
  for (const values of [
    { tab: "events" },
    { colour: "speed" },
    { filter: "a > 1" },
    { select: { stream: "s", key: "k" } },
  ])
    assert.equal(isStep(at({}), at({}, values)), true);
  assert.equal(isStep(at({}), at({}, {}, TABLE)), true);
  assert.equal(isStep(at({}, {}, TABLE), at({}, {}, { ...TABLE, search: "anna" })), false); // while the user types
});

/** Return a window with a history, and an address of a page that has a tab and a theme. */
function opened(hash = "#9/60/25") {
  const entries = [{ state: null, search: "", hash }];
  let [at, pop] = [0, null];
  const parse = (url) => ({ hash: url.slice(url.indexOf("#")), search: "" });
  const window = {
    get location() {
      return { pathname: "/", ...entries[at] };
    },
    history: {
      get state() {
        return entries[at].state;
      },
      pushState: (state, _, url) => entries.splice(++at, entries.length, { state, ...parse(url) }),
      replaceState: (state, _, url) => (entries[at] = { state, ...parse(url) }),
    },
    addEventListener: (_, listener) => (pop = listener),
    back: () => pop({ state: entries[--at].state }),
  };
  const page = { view: VIEW, tab: "queries", theme: null, faults: [] };
  const address = new Address({
    window,
    view: () => page.view,
    showView: (view) => (page.view = view),
    table: () => null,
    showTable: () => {},
    onFaults: (faults) => page.faults.push(...faults),
  });
  address.connect("tab", { get: () => page.tab, set: (tab) => (page.tab = tab) });
  address.connect("theme", { get: () => page.theme, set: (theme) => (page.theme = theme) });
  address.apply(window.location);
  const change = (changes) => {
    Object.assign(page, changes);
    address.write();
  };
  return { window, page, change, entries };
}

test("Back returns to the view before a deliberate change", () => {
  const { window, page, change, entries } = opened("#9/60/25&tab=layers&odd=1");
  assert.deepEqual([page.tab, page.faults], ["layers", ["odd=1"]]);
  change({ view: { ...VIEW, lon: 26 } });
  assert.equal(entries.length, 1); // a move of the map
  change({ tab: "queries", theme: "dark" });
  change({ view: { ...VIEW, lon: 27 } });
  change({ tab: "events" });
  assert.equal(entries.length, 3);
  window.back();
  assert.deepEqual([page.tab, page.view.lon], ["queries", 27]); // the usual value, which the address leaves out
  window.back();
  assert.deepEqual([page.tab, page.view.lon, page.theme], ["layers", 26, "dark"]);
});

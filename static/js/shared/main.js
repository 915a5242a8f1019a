// The page of a share link: a map with the answers of its queries. It only reads, and has nothing that changes anything.

import { DisplayFilter } from "../display-filter/display-filter.js";
import { $, coalesced, h, setText } from "../dom.js";
import { filled, gettext } from "../i18n.js";
import { MonitorMap } from "../map/map.js";
import { createPalette } from "../map/palette.js";
import { createFigures } from "../queries/query-answer.js";
import { answerWords } from "../queries/query-words.js";
import { createSketched } from "../kinds/sketch/card.js";
import { STATES } from "../status-bar.js";
import { Socket } from "../store/socket.js";
import { stateText } from "../states.js";
import { createStore } from "../store/store.js";
import { Subscriptions } from "../store/subscriptions.js";
import { ColourBy } from "../symbology/colour-by.js";
import { paintOf } from "../symbology/colours.js";
import { createTheme, isDark } from "../theme.js";
import { recallUnits } from "../units-control.js";
import { parseHash } from "../url-state.js";

const { L, Arrow } = window;
const SHOW_MS = 100;
const RESTALE_MS = 5000;
const OBJECT_ZOOM = 12;
const ENDED = {
  4410: gettext("This link has ended. Ask whoever sent it to you for a new one."),
  4413: gettext("Too many people use this link now. Try again later."),
};

recallUnits();
const page = JSON.parse($("page").textContent);
const now = () => Date.now();
const store = createStore();
const palette = createPalette();
const colourBy = new ColourBy(store);
const map = new MonitorMap($("map"), {
  L,
  store,
  now,
  palette: palette.read,
  hidden: () => false,
  veil: () => 0,
  marks: () => ({ pointed: undefined, watched: [] }),
  colourBy, // nobody chooses colours here, or a filter
  paint: () => paintOf(colourBy.ranges, isDark()),
  filter: new DisplayFilter(store),
  baseUrls: { ...document.body.dataset, world: document.body.dataset.world.split(" ") },
  baseMaps: page.base_maps,
  isDark,
  onPlan: () => Promise.resolve(),
  start: parseHash(page.address || location.hash),
});
const socket = new Socket(page.websocket, {
  Arrow,
  onState: (state, code, reason) => {
    store.setLink(state, now(), reason);
    if (code in ENDED) end(ENDED[code]);
  },
  onOpen: () => subscriptions.reset(),
  onMessage: (message) => {
    if (!subscriptions.expects(message)) return;
    store.apply(message, now());
    subscriptions.follow(message);
  },
});
const subscriptions = new Subscriptions({
  store,
  socket,
  bounds: () => map.bounds(),
  shown: () => true,
  wanted: () => true,
});
subscriptions.view = () => {}; // a guest sees the answers, not all objects in view

const rows = new Map();
const fitted = { done: Boolean(page.address), count: 0 };
const show = coalesced(() => {
  const queries = store.listed();
  map.showQueries(queries);
  $("shared-none").hidden = queries.length > 0;
  showRows(queries);
  fit(queries);
}, SHOW_MS);
store.on("queries objects figures places", show);
store.on("objects", () => map.objects.invalidate());
store.on("status", showState);
setInterval(() => map.refresh(), RESTALE_MS); // objects fade with time alone
for (const moved of ["pointerdown", "wheel", "keydown"])
  $("map").addEventListener(moved, () => (fitted.done = true), { capture: true, passive: true });
new ResizeObserver(() => map.leaflet.invalidateSize({ pan: false })).observe($("map"));
createTheme($("theme"));
map.setBase(map.firstBase(undefined));
setText(
  $("shared-ends"),
  filled(gettext("Ends %(time)s UTC"), { time: new Date(page.expires).toISOString().slice(0, 16).replace("T", " ") }),
);
socket.connect();

/** Show all queries whose shapes are on the map, until the guest moves it. */
function fit(queries) {
  const drawn = queries.map(({ query }) => map.rectangles.get(query)?.shape.getBounds() ?? map.moving.boundsOf(query));
  const known = drawn.filter((bounds) => bounds?.isValid());
  if (fitted.done || known.length <= fitted.count) return;
  fitted.count = known.length;
  map.fitBounds(known.reduce((all, one) => all.extend(one), L.latLngBounds([])));
}

function showRows(queries) {
  const known = new Set(queries.map(({ query }) => query));
  for (const number of rows.keys()) if (!known.has(number)) rows.delete(number);
  for (const query of queries) {
    if (!rows.has(query.query)) rows.set(query.query, createRow(query.query));
    rows.get(query.query).update(query);
  }
  const elements = queries.map(({ query }) => rows.get(query).element);
  const list = $("shared-queries");
  if (list.children.length !== elements.length || elements.some((element, i) => list.children[i] !== element))
    list.replaceChildren(...elements);
}

function createRow(number) {
  const name = h("span", { class: "name" });
  const answer = h("output", {});
  const figures = createFigures(store, number, (_, [lon, lat]) => map.flyTo(lon, lat, OBJECT_ZOOM));
  const sketched = createSketched(store, number);
  const dot = h("span", { class: "dot", "aria-hidden": "true" });
  const element = h("li", {}, dot, name, answer, sketched.element);
  const update = (query) => {
    const { text, title } = answerWords(store, query);
    setText(name, query.name);
    setText(answer, text || "\u2013");
    answer.title = query.status === "running" ? title : stateText(query.status);
    figures.update(query, now());
    const grouped = Boolean(query.plan.aggregate?.group_by); // of one figure, the row says enough
    if (!grouped) figures.element.remove();
    else if (!element.contains(figures.element)) element.append(figures.element);
    sketched.update(query);
    element.style.setProperty("--colour", `var(--q${query.colour})`);
  };
  return { element, update };
}

function showState() {
  const state = store.connection(now());
  setText($("shared-state"), store.link.reason || STATES[state]);
  $("shared-state").dataset.state = state;
}

function end(text) {
  setText($("shared-over-text"), text);
  $("shared-over").hidden = false;
}

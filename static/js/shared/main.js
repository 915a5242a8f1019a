// The page of a share link: a map with the answers of its queries. It only reads, and has nothing that changes anything.

import { DisplayFilter } from "../display-filter/display-filter.js";
import { $, coalesced, h, setText } from "../dom.js";
import { count } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { MonitorMap } from "../map.js";
import { createPalette } from "../palette.js";
import { Socket } from "../socket.js";
import { createStore } from "../store.js";
import { Subscriptions } from "../subscriptions.js";
import { ColourBy } from "../symbology/colour-by.js";
import { paintOf } from "../symbology/colours.js";
import { createTheme, isDark } from "../theme.js";
import { recallUnits } from "../units-control.js";
import { parseHash } from "../url-state.js";

const { L, Arrow } = window;
const SHOW_MS = 100;
const RESTALE_MS = 5000;
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

const fitted = { done: Boolean(page.address) };
const show = coalesced(() => {
  const queries = store.listed();
  map.showQueries(queries);
  $("shared-none").hidden = queries.length > 0;
  $("shared-queries").replaceChildren(...queries.map(row));
  const boxes = map.rectangles;
  if (fitted.done || boxes.size === 0) return;
  fitted.done = true;
  map.fitBounds([...boxes.values()].map(({ shape }) => shape.getBounds()).reduce((all, one) => all.extend(one)));
}, SHOW_MS);
store.on("queries objects figures places", show);
store.on("objects", () => map.objects.invalidate());
store.on("status", showState);
setInterval(() => map.refresh(), RESTALE_MS); // objects fade with time alone
createTheme($("theme"), () => {
  palette.forget();
  map.recolour();
});
map.setBase(map.firstBase(undefined));
setText(
  $("shared-ends"),
  filled(gettext("Ends %(time)s UTC"), { time: new Date(page.expires).toISOString().slice(0, 16).replace("T", " ") }),
);
socket.connect();

function row(query) {
  const element = h(
    "li",
    {},
    h("span", { class: "dot", "aria-hidden": "true" }),
    h("span", { class: "name" }, query.name),
    h("output", {}, store.answered(query.query) ? count(store.count(query.query)) : "\u2013"),
  );
  element.style.setProperty("--colour", `var(--q${query.colour})`);
  return element;
}

function showState() {
  setText(
    $("shared-state"),
    ["live", "slow"].includes(store.connection(now())) ? gettext("Live") : store.link.reason || gettext("Connecting…"),
  );
}

function end(text) {
  setText($("shared-over-text"), text);
  $("shared-over").hidden = false;
}

// The regions of the engine on the map, with what each of them does, and how they changed.

import { $, coalesced, h, setText } from "../dom.js";
import { count, utcTime } from "../format.js";
import { filled, gettext, ngettext, number } from "../i18n.js";
import { pageEvents } from "../page-events.js";

const REFRESH_MS = 250;
const FAINTEST = 0.03;
const STRONGEST = 0.38;
const MOST_LATITUDE = 85;

/** @param {Record<string, any>} parts Leaflet as `L`; `map`, its map; `store`; `colour()`; `onShow(on)`, called when they are shown or hidden */
export function createRegions({ L, map, store, colour, onShow }) {
  map.createPane("regions").style.zIndex = 420;
  const drawn = new Map(); // space -> {number, boxes, labels}
  const group = L.layerGroup();
  const box = $("regions");
  const draw = coalesced(() => {
    for (const [space, known] of drawn)
      if (!store.regions.has(space) || known.number !== store.regions.get(space).number) remove(space);
    for (const message of store.regions.values()) {
      if (!drawn.has(message.space)) drawn.set(message.space, added(L, group, message));
      restyle(drawn.get(message.space), message, map, colour());
    }
    list([...store.regions.values()]);
  }, REFRESH_MS);
  const remove = (space) => {
    for (const layer of Object.values(drawn.get(space)).flat()) if (layer.remove) group.removeLayer(layer);
    drawn.delete(space);
  };
  box.addEventListener("change", () => {
    if (box.checked) group.addTo(map);
    else group.remove();
    $("region-list").hidden = !box.checked;
    onShow(box.checked);
  });
  store.on("regions", draw);
  map.on("moveend", () => box.checked && draw());
  pageEvents.on("theme", draw);
}

function added(L, group, { number: of, regions }) {
  const boxes = regions.map(({ lo, hi }) =>
    L.rectangle(corners(lo, hi), { pane: "regions", interactive: false, weight: 1.5 }).addTo(group),
  );
  const icon = () => L.divIcon({ className: "region-label", html: "<span></span>", iconSize: [0, 0] });
  const labels = regions.map(() =>
    L.marker([0, 0], { icon: icon(), interactive: false, keyboard: false }).addTo(group),
  );
  return { number: of, boxes, labels };
}

function restyle({ boxes, labels }, { regions }, map, colour) {
  const shares = sharesOf(regions);
  const view = map.getBounds();
  regions.forEach((region, i) => {
    boxes[i].setStyle({ color: colour, fillColor: colour, fillOpacity: FAINTEST + (STRONGEST - FAINTEST) * shares[i] });
    const seen = boxes[i].getBounds().intersects(view);
    labels[i].setOpacity(seen ? 1 : 0);
    if (!seen) return;
    const [south, west, north, east] = inner(boxes[i].getBounds(), view);
    labels[i].setLatLng([(south + north) / 2, (west + east) / 2]);
    const text = labels[i].getElement()?.firstChild;
    if (text)
      setText(text, filled(gettext("Region %(number)s: %(rate)s"), { number: region.region, rate: rate(region) }));
  });
}

function inner(one, other) {
  return [
    Math.max(one.getSouth(), other.getSouth()),
    Math.max(one.getWest(), other.getWest()),
    Math.min(one.getNorth(), other.getNorth()),
    Math.min(one.getEast(), other.getEast()),
  ];
}

function corners(lo, hi) {
  const latitude = (value) => Math.min(Math.max(value, -MOST_LATITUDE), MOST_LATITUDE);
  return [
    [latitude(lo[1]), lo[0]],
    [latitude(hi[1]), hi[0]],
  ];
}

/** Return how busy each region is, from 0 to 1, as a share of the busiest; without processor time, by its elements. */
export function sharesOf(regions) {
  const most = (name) => Math.max(...regions.map((region) => region[name]), 0);
  const name = most("cores") > 0 ? "cores" : "elements_per_s";
  return regions.map((region) => (most(name) > 0 ? region[name] / most(name) : 0));
}

function rate({ elements_per_s: elementsPerS }) {
  return `${count(Math.round(elementsPerS))}/s`;
}

function list(messages) {
  const several = messages.length > 1;
  const name = (space, region) => (several ? `${space} ${region}` : String(region));
  fill(
    $("region-rows"),
    messages.flatMap(({ space, regions }) =>
      regions.map((region) => [
        name(space, region.region),
        rate(region),
        count(region.objects),
        `${number(100 * region.cores, 1)} %`,
        region.worker,
      ]),
    ),
  );
  const changes = messages.flatMap((message) => message.changes.map((change) => ({ space: message.space, ...change })));
  changes.sort((a, b) => b.at_us - a.at_us);
  fill(
    $("region-changes"),
    changes.map(({ space, at_us: at, why, regions }) => [
      utcTime(at / 1000),
      `${several ? `${space}: ` : ""}${why || firstText(regions)}`,
    ]),
  );
}

function firstText(regions) {
  return filled(ngettext("%(count)s region at first", "%(count)s regions at first", regions), { count: regions });
}

/** Write rows of texts into a table's body; the last cell of a row may be long. Only what differs is written. */
function fill(body, rows) {
  while (body.children.length > rows.length) body.lastChild.remove();
  rows.forEach((texts, i) => {
    if (!body.children[i])
      body.append(
        h("tr", {}, ...texts.map((_, column) => h(column === 0 ? "th" : "td", column === 0 ? { scope: "row" } : {}))),
      );
    texts.forEach((text, column) => setText(body.children[i].children[column], text));
  });
}

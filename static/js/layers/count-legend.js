// The legend of layers that are coloured by how many objects their features are paired with: numbers, colours, queries.

import { $, coalesced, h, setText } from "../dom.js";
import { countSteps, countStyle, layerRank, pairedCounts } from "./features.js";
import { count } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { pageEvents } from "../page-events.js";

const REFRESH_MS = 250;
const SVG = "http://www.w3.org/2000/svg";
// What a feature of each rank looks like in the legend: an area, a line, a point.
const SAMPLES = [
  ["rect", { x: 3, y: 3, width: 22, height: 12, rx: 2 }],
  ["line", { x1: 3, y1: 9, x2: 25, y2: 9 }],
  ["circle", { cx: 14, cy: 9, r: 5 }],
];

/** @param {Record<string, any>} parts `store`; `palette()`; `onJoin(layer)`; `onPlain(layer)`, which colours it as before */
export function createCountLegend({ store, palette, onJoin, onPlain }) {
  const box = $("count-legend");
  const rows = new Map();
  const render = () => {
    const coloured = [...store.layers.values()].filter(
      (layer) => layer.shown && layer.byCount && layer.version !== null,
    );
    const names = new Set(coloured.map(({ name }) => name));
    for (const [name, row] of rows) {
      if (names.has(name)) continue;
      row.element.remove();
      rows.delete(name);
    }
    for (const layer of coloured) {
      if (!rows.has(layer.name)) {
        rows.set(layer.name, createRow(layer.name, onJoin, onPlain));
        box.append(rows.get(layer.name).element);
      }
      update(rows.get(layer.name), layer, store.joinsOf(layer.name), palette().count);
    }
    box.hidden = coloured.length === 0;
  };
  store.on("layers queries pairs", coalesced(render, REFRESH_MS));
  pageEvents.on("theme", render);
}

function createRow(name, onJoin, onPlain) {
  const parts = {
    title: h("h3"),
    steps: h("ul", { class: "count-steps" }),
    about: h("p", { class: "hint" }),
    join: h("button", { type: "button", class: "small", onclick: () => onJoin(name) }, gettext("Join with a stream")),
  };
  const close = h(
    "button",
    {
      type: "button",
      class: "quiet icon",
      "aria-label": gettext("Stop colouring by count"),
      onclick: () => onPlain(name),
    },
    "\u00d7",
  );
  parts.element = h(
    "section",
    { "data-legend": name },
    h("header", {}, parts.title, close),
    parts.steps,
    parts.about,
    parts.join,
  );
  return parts;
}

function update(parts, layer, joins, colour) {
  const { most } = pairedCounts(joins);
  const names = joins.map(({ query }) => `\u201c${query.name}\u201d`).join(", ");
  setText(parts.title, layer.title);
  const about = filled(gettext("Objects paired with each feature now, by %(queries)s"), { queries: names });
  setText(
    parts.about,
    joins.length > 0 ? about : gettext("No shown query joins this layer, so there is nothing to count."),
  );
  parts.join.hidden = joins.length > 0;
  parts.steps.hidden = joins.length === 0;
  const wanted = JSON.stringify([most, layer.geometry_types, colour]);
  if (parts.drawn === wanted) return;
  parts.drawn = wanted;
  const rank = layerRank(layer.geometry_types);
  parts.steps.replaceChildren(
    ...countSteps(most).map((number) =>
      h("li", {}, sample(rank, countStyle(rank, most > 0 ? number / most : 0, colour)), h("span", {}, count(number))),
    ),
  );
}

function sample(rank, style) {
  const [tag, shape] = /** @type {[string, Record<string, any>]} */ (SAMPLES[rank]);
  const svg = document.createElementNS(SVG, "svg");
  const element = document.createElementNS(SVG, tag);
  const look = { fill: rank === 1 ? "none" : style.fillColor, stroke: style.color };
  const widths = { "fill-opacity": style.fillOpacity, "stroke-width": style.weight, "stroke-opacity": style.opacity };
  for (const [name, value] of Object.entries({ ...shape, ...look, ...widths })) element.setAttribute(name, value);
  for (const [name, value] of Object.entries({ width: 28, height: 18, "aria-hidden": "true" }))
    svg.setAttribute(name, String(value));
  svg.append(element);
  return svg;
}

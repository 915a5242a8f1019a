// By what the objects on the map are coloured, how long their trails are, and how far the lines ahead; with the legend.

import { $, coalesced, h, offer, repeated, setText } from "../dom.js";
import { gettext, number } from "../i18n.js";
import { LENGTHS_MIN, USUAL_MIN } from "../objects/trails.js";
import { MINUTES } from "../map/course-vectors.js";
import { pageEvents } from "../page-events.js";
import { recall, remember } from "../remembered.js";
import { choicesOf, ColourBy, isChoice, NOTHING } from "./colour-by.js";
import { paintOf } from "./colours.js";

const REFRESH_MS = 1000;
const OFFER_MS = 3000;

/**
 * @param {Record<string, any>} parts `store`; `isDark()`; `layer()`, the layer of the objects; `onTrails(on)`; `onChange()`, called when the user chose
 * @returns {Record<string, any>} `colourBy`; `paint()`; `start()`, once the map is there; and for each of
 *   `colour`, `steps`, `trail` and `vector` an object with `get()` and `set(value)`
 */
export function createSymbology({ store, isDark, layer, onTrails, onChange }) {
  const kept = { by: NOTHING, equal: false, trail: USUAL_MIN, vector: 0, ...recall("look") };
  const colourBy = new ColourBy(store);
  colourBy.choose(isChoice(kept.by) ? kept.by : NOTHING, Boolean(kept.equal));
  let trailBefore = kept.trail || USUAL_MIN; // to which `t` returns
  let paint = null;
  const box = $("colour-legend");
  const selects = { by: $("colour-by"), trail: $("trail-length"), vector: $("vector-length") };

  const legend = () => {
    box.hidden = !colourBy.active;
    if (!colourBy.active) return;
    const { title, unit, rows } = colourBy.legend();
    setText($("colour-legend-title"), unit ? `${title}, ${unit}` : title);
    const { fills, edge } = painted();
    const wanted = JSON.stringify([rows, fills, edge]);
    $("colour-legend-equal").hidden = colourBy.ranges === null || colourBy.by === "age";
    $("colour-legend-equal").setAttribute("aria-pressed", String(colourBy.equal));
    if (box.dataset.drawn === wanted) return;
    box.dataset.drawn = wanted;
    $("colour-legend-rows").replaceChildren(
      ...rows.map(([one, text]) => {
        const swatch = h("span", { class: "class-swatch", "aria-hidden": "true" });
        swatch.style.background = fills[one];
        swatch.style.borderColor = edge;
        return h("li", {}, swatch, h("span", {}, text));
      }),
    );
  };
  const painted = () => (paint ??= paintOf(colourBy.ranges, isDark()));
  const redraw = () => {
    paint = null;
    layer().reset();
    legend();
  };
  const show = () => {
    offerChoices();
    selects.trail.value = kept.trail;
    selects.vector.value = kept.vector;
    Object.assign(layer(), { trailMin: kept.trail, vectorMin: kept.vector });
    store.objects.trails.keep(kept.trail || trailBefore);
    onTrails(kept.trail > 0);
    redraw();
  };
  const offerChoices = () => offer(selects.by, choicesOf(store.objects), colourBy.by);
  /** Change something, and remember it unless it came from an address. */
  const change = (changes, own = true) => {
    Object.assign(kept, changes);
    if (kept.trail > 0) trailBefore = kept.trail;
    if ("by" in changes || "equal" in changes) colourBy.choose(kept.by, kept.equal);
    show();
    if (!own) return;
    remember("look", kept);
    onChange();
  };
  const start = () => {
    const minutes = (choices, none) =>
      choices.map((min) => new Option(min === 0 ? none : `${number(min, 0)} min`, min));
    selects.trail.append(...minutes(LENGTHS_MIN, gettext("Off")));
    selects.vector.append(...minutes(MINUTES, gettext("Off")));
    selects.by.addEventListener("change", () => change({ by: selects.by.value }));
    selects.trail.addEventListener("change", () => change({ trail: Number(selects.trail.value) }));
    selects.vector.addEventListener("change", () => change({ vector: Number(selects.vector.value) }));
    $("colour-legend-close").addEventListener("click", () => change({ by: NOTHING }));
    $("colour-legend-equal").addEventListener("click", () => change({ equal: !colourBy.equal }));
    $("colour-legend-fit").addEventListener("click", () => {
      colourBy.fit();
      redraw();
    });
    selects.by.addEventListener("focus", offerChoices);
    store.on(
      "objects",
      coalesced(() => !$("pane-layers").hidden && offerChoices(), OFFER_MS),
    );
    repeated(() => colourBy.refit() && redraw(), REFRESH_MS);
    show();
  };
  pageEvents.on("theme units", () => {
    colourBy.fit();
    redraw();
  });
  return {
    colourBy,
    paint: painted,
    start,
    /** Show trails as long as before, or none. */
    showTrails: (on) => change({ trail: on ? trailBefore : 0 }),
    trailsOn: () => kept.trail > 0,
    colour: { get: () => kept.by, set: (by) => change({ by }, false) },
    steps: { get: () => (kept.equal ? "equal" : "round"), set: (steps) => change({ equal: steps === "equal" }, false) },
    trail: { get: () => kept.trail, set: (trail) => change({ trail }, false) },
    vector: { get: () => kept.vector, set: (vector) => change({ vector }, false) },
  };
}

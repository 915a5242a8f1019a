// The layer control: which streams are shown, on which base map, with or without names.

import { $, coalesced, h, repeated, setText } from "../dom.js";
import { age, count, staleness } from "../format.js";
import { normalisedBox } from "../geometry.js";
import { filled, gettext, number } from "../i18n.js";
import { KINDS } from "../objects/object-kinds.js";
import { createOrigin } from "../objects/origin.js";
import { stateText } from "../states.js";

const REFRESH_MS = 500;

/**
 * @param {Record<string, any>} parts `store`; `map`, a MonitorMap; `now()`; `shown(stream)`; `toggle(stream, on)`; `base`, the number of
 *   the base map that is shown; `onBase(i)`; `names`, whether names are shown; `onNames(on)`;
 *   `dense(stream)`, whether its density is shown; `onDense(stream, on)`
 */
export function createLayers(parts) {
  const { store, map } = parts;
  const rows = new Map();
  const render = () => {
    for (const [name, row] of rows) {
      if (store.streams.has(name)) continue;
      row.element.remove();
      rows.delete(name);
    }
    const seen = countInView(store.objects, map.bounds());
    for (const stream of store.streams.values()) {
      if (!rows.has(stream.name)) {
        const row = createRow(stream, parts);
        rows.set(stream.name, row);
        $("stream-list").append(row.element);
      }
      rows.get(stream.name).update(stream, parts.shown(stream.name) ? (seen.get(stream.name) ?? 0) : 0);
    }
    const greeted = store.user !== null;
    const running = [...store.streams.values()].some(({ enabled }) => enabled !== false);
    for (const note of document.querySelectorAll(".no-stream")) note.hidden = running || !greeted;
  };
  map.baseTitles.forEach((name, i) => {
    const input = h("input", {
      type: "radio",
      name: "base",
      value: i,
      checked: i === parts.base,
      onchange: () => parts.onBase(i),
    });
    $("base-list").append(h("li", {}, h("label", { class: "choice" }, input, h("span", {}, name))));
  });
  $("names").checked = parts.names;
  $("names").addEventListener("change", ({ target }) => parts.onNames(target.checked));
  store.on("streams objects", coalesced(render, REFRESH_MS));
  repeated(render, 1000);
  render();
}

/** Count the objects of each stream in the view `{west, south, east, north}`; answers hold objects outside of it, too. */
export function countInView(objects, bounds) {
  return objects.countIn(normalisedBox(bounds));
}

function createRow(stream, /** @type {Record<string, any>} */ { store, now, shown, toggle, dense, onDense }) {
  const input = h("input", { type: "checkbox", onchange: ({ target }) => toggle(stream.name, target.checked) });
  const dot = h("span", { "aria-hidden": "true" });
  const name = h("span", { class: "stream-name" });
  const origin = createOrigin();
  const about = h("span", { class: "stream-about" });
  const density = h("input", {
    type: "checkbox",
    "data-density": stream.name,
    onchange: ({ target }) => onDense(stream.name, target.checked),
  });
  const sketched = h(
    "label",
    { class: "choice density-choice", hidden: true },
    density,
    h("span", {}, gettext("Density")),
  );
  const element = h(
    "li",
    {},
    h(
      "label",
      { class: "choice" },
      input,
      dot,
      h("span", { class: "stream-text" }, h("span", { class: "stream-title" }, name, origin.element), about),
    ),
    sketched,
  );
  const update = (current, seen) => {
    const off = current.enabled === false;
    input.checked = !off && shown(current.name);
    input.disabled = off;
    element.classList.toggle("off", off);
    dot.className = `kind kind-${KINDS[current.kind]}`;
    setText(name, current.title ?? current.name);
    origin.update(current);
    sketched.hidden = !current.sketch;
    density.checked = dense(current.name);
    density.setAttribute("aria-label", filled(gettext("Density of %(stream)s"), { stream: name.textContent }));
    setText(about, off ? gettext("switched off in the admin") : describe(current, seen, store, now()));
  };
  return { element, update };
}

/** Say how long ago the last report came. */
function lastText(ms) {
  const ago = age(ms);
  return ago === age(0) ? gettext("last report now") : filled(gettext("last report %(time)s ago"), { time: ago });
}

function describe({ health, receivedMs: received, stored, retention_s: retention }, seen, store, nowMs) {
  const parts = [filled(gettext("%(count)s in view"), { count: count(seen) })];
  if (health) {
    if (health.state && health.state !== "running") parts.push(stateText(health.state));
    if (Number.isFinite(health.elements_per_s)) parts.push(`${number(health.elements_per_s, 1)}/s`);
    if (health.last_us) {
      const told = health.last_us / 1000 - store.clockOffsetMs;
      parts.push(lastText(nowMs - Math.max(told, received ?? told))); // the gateway tells every few seconds
    }
    const hint = staleness(health);
    if (hint) parts.push(hint);
    if (health.error) parts.push(health.error);
  }
  if (stored)
    parts.push(
      Number.isFinite(retention)
        ? filled(gettext("stored for %(time)s"), { time: age(1000 * retention) })
        : gettext("stored"),
    );
  // Lines break only between parts, and within an error, which may be long.
  return parts.map((part) => (part === health?.error ? part : part.replaceAll(" ", "\u00a0"))).join(" \u00b7 ");
}

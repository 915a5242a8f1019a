// The kiosk view, for a screen on the wall: only the map, with a large clock and counts. "?kiosk=1" in the address begins with it.

import { $, h, repeated, setText } from "./dom.js";
import { count, utcClock, utcTime } from "./format.js";
import { countInView } from "./layers/layers.js";
import { filled, ngettext } from "./i18n.js";
import { onEscape } from "./page-events.js";
import { answerWords } from "./queries/query-words.js";
import { STATES } from "./status-bar.js";

const REFRESH_MS = 500;
const MOST_ROWS = 6;

/** @param {Record<string, any>} parts `store`; `map`, a MonitorMap; `now()`; `onChange()`, called when it begins or ends */
export function createKiosk({ store, map, now, onChange }) {
  let on = false;
  const box = $("kiosk");
  const rows = () => {
    const seen = countInView(store.objects, map.bounds());
    const streams = [...store.streams.values()]
      .filter(({ name }) => seen.has(name))
      .sort((a, b) => seen.get(b.name) - seen.get(a.name))
      .map(({ name, title }) => ({ name: title ?? name, text: count(seen.get(name)) }));
    const queries = store
      .listed()
      .filter(({ shown }) => shown)
      .map((query) => ({ name: query.name, ...answerWords(store, query), colour: `var(--q${query.colour})` }))
      .filter(({ text }) => text)
      .sort((a, b) => Number(b.raised) - Number(a.raised)); // what has crossed a threshold is not among the rest
    return [...first(streams), ...first(queries)];
  };
  const render = () => {
    if (!on) return;
    const nowMs = now() + store.clockOffsetMs;
    setText($("kiosk-clock"), utcClock(nowMs));
    setText($("kiosk-day"), `${utcTime(nowMs).slice(0, 10)} UTC`);
    box.dataset.state = store.connection(now());
    setText($("kiosk-state"), STATES[box.dataset.state]);
    show($("kiosk-counts"), rows());
  };
  const set = (wanted) => {
    if (wanted === on) return;
    on = wanted;
    document.body.classList.toggle("kiosk-view", on);
    box.hidden = !on;
    map.leaflet.invalidateSize({ pan: false });
    if (on) document.activeElement?.blur();
    render();
    onChange();
  };
  $("open-kiosk").addEventListener("click", () => set(true));
  $("kiosk-leave").addEventListener("click", () => set(false));
  onEscape("kiosk", () => on && (set(false), true));
  repeated(render, REFRESH_MS);
  return { get: () => on, set };
}

/** Return as many rows as the wall has room for, and a last one that says how many are left. */
function first(rows) {
  const rest = rows.length - MOST_ROWS;
  if (rest <= 0) return rows;
  const words = ngettext("and %(count)s more", "and %(count)s more", rest);
  return [...rows.slice(0, MOST_ROWS), { name: filled(words, { count: count(rest) }), text: "" }];
}

/** Show rows `{name, text, colour, raised}`; those that are there are written again. */
function show(list, rows) {
  while (list.children.length > rows.length) list.lastChild.remove();
  rows.forEach(({ name, text, colour = "", raised = false }, i) => {
    if (!list.children[i]) list.append(h("div", {}, h("dt"), h("dd")));
    const [row, term, figure] = [list.children[i], ...list.children[i].children];
    row.style.setProperty("--colour", colour);
    row.classList.toggle("coloured", colour !== "");
    row.classList.toggle("raised", raised);
    setText(term, name);
    setText(figure, text);
  });
}

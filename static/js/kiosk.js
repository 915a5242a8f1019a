// The kiosk view, for a screen on the wall: only the map, with a large clock and counts. "?kiosk=1" in the address begins with it.

import { $, repeated, setText } from "./dom.js";
import { count, utcClock, utcTime } from "./format.js";
import { countInView } from "./layers.js";
import { fill } from "./object-panel.js";
import { answerWords } from "./query-words.js";
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
      .map(({ name, title }) => [title ?? name, count(seen.get(name))]);
    const queries = store
      .listed()
      .filter(({ shown }) => shown)
      .map((query) => [query.name, answerWords(store, query).text])
      .filter(([, text]) => text);
    return [...streams.slice(0, MOST_ROWS), ...queries.slice(0, MOST_ROWS)];
  };
  const render = () => {
    if (!on) return;
    const nowMs = now() + store.clockOffsetMs;
    setText($("kiosk-clock"), utcClock(nowMs));
    setText($("kiosk-day"), `${utcTime(nowMs).slice(0, 10)} UTC`);
    const state = store.connection(now());
    box.dataset.state = state;
    setText($("kiosk-state"), STATES[state]);
    fill($("kiosk-counts"), rows());
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
  repeated(render, REFRESH_MS);
  return { get: () => on, set };
}

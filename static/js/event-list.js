// The list of events, newest first: who entered or left which answer, when, and why.

import { $, coalesced, h, setText } from "./dom.js";
import { count, happened, parsed, place, reason, SIGNS, title, utcClock, utcTime } from "./format.js";

const SHOWN = 300;
const REFRESH_MS = 250;

/** @param {object} parts `store`; `open()`, whether the list is in view; `onPick(event)` */
export class EventList {
  constructor(parts) {
    Object.assign(this, parts);
    this.filter = null;
    this.newest = 0;
    this.list = $("event-list");
    $("event-filter").addEventListener("change", ({ target }) => this.filterBy(target.value === "" ? null : Number(target.value)));
    const refresh = coalesced(() => this.refresh(), REFRESH_MS);
    this.store.on("events queries", refresh);
    this.refresh();
  }

  /** Show the events of one query; null for all. */
  filterBy(query) {
    this.filter = query;
    this.newest = 0;
    this.list.replaceChildren();
    this.refresh();
  }

  refresh() {
    if (this.open()) this.store.readEvents();
    setText($("unread"), this.store.unread > 0 ? (this.store.unread > 999 ? "999+" : String(this.store.unread)) : "");
    $("unread").setAttribute("aria-label", this.store.unread > 0 ? `${count(this.store.unread)} unread` : "");
    this.#options();
    if (!this.open()) return;
    const { events } = this.store;
    const fresh = [];
    for (let i = events.length - 1; i >= 0 && events[i].number > this.newest && fresh.length < SHOWN; i--) {
      if (this.filter === null || events[i].query === this.filter) fresh.push(this.#row(events[i]));
    }
    this.newest = events.at(-1)?.number ?? 0;
    this.list.prepend(...fresh);
    while (this.list.children.length > SHOWN) this.list.lastChild.remove();
    $("events-empty").hidden = this.list.children.length > 0;
  }

  #row(event) {
    const name = title(event.key, parsed(event.text));
    const sign = h("span", { class: "sign", "data-sign": event.sign, "aria-label": signWord(event) }, SIGNS[event.sign]);
    const text = h("span", { class: "event-text" },
      h("span", { class: "event-head" }, h("span", { class: "event-name" }, happened(name, event)), keyBeside(name, event)),
      h("span", { class: "event-about" }, event.threshold ? "threshold" : `${event.queryName} \u00b7 ${reason(event.reason, event.sign)}`));
    sign.style.setProperty("--colour", `var(--q${event.colour})`);
    const button = h("button", { type: "button", class: "event quiet", title: `${utcTime(event.timeMs)}\n${place(event.lon, event.lat)}` },
      sign, text, h("time", { datetime: isoTime(event.timeMs) }, utcClock(event.timeMs)));
    button.addEventListener("click", () => this.onPick(event));
    return h("li", {}, button);
  }

  #options() {
    const select = $("event-filter");
    const queries = this.store.listed();
    const wanted = JSON.stringify(queries.map((q) => [q.query, q.name]));
    if (this.options !== wanted) {
      this.options = wanted;
      select.replaceChildren(new Option("All queries", ""), ...queries.map((q) => new Option(q.name, q.query)));
    }
    select.value = this.filter === null ? "" : String(this.filter);
    if (select.selectedIndex < 0) this.filterBy(null);
  }
}

/** The key of an object that has a name: names repeat, keys do not. */
function keyBeside(name, { key, threshold }) {
  return threshold || name === key ? null : h("span", { class: "event-key" }, key);
}

function signWord({ sign, threshold }) {
  if (threshold) return sign > 0 ? "crossed" : "no longer crossed";
  return sign > 0 ? "entered" : "left";
}

function isoTime(ms) {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : "";
}

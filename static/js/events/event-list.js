// The list of events, newest first: who entered or left which answer, when, and why. What one object does in one query is one row.

import { $, coalesced, h, icon, setText } from "../dom.js";
import { EventGroups, GROUPS_KEPT, timesText } from "./event-groups.js";
import {
  count,
  crossingText,
  happened,
  parsed,
  place,
  reason,
  SIGNS,
  spanText,
  title,
  toldText,
  utcClock,
  utcTime,
} from "../format.js";
import { filled, gettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";

const REFRESH_MS = 250;

/**
 * @param {Record<string, any>} parts `store`; `open()`, whether the list is in view; `onPick(event)`; `onWhy(event)`; `onFilter()`, called when
 *   it shows another query
 */
export class EventList {
  store;
  open;
  onFilter;
  onPick;
  onWhy;

  constructor(parts) {
    Object.assign(this, parts);
    this.groups = new EventGroups();
    this.rows = new WeakMap(); // group -> its element
    this.expanded = new WeakSet(); // groups whose single events are shown
    this.list = $("event-list");
    $("event-filter").addEventListener("change", ({ target }) =>
      this.filterBy(target.value === "" ? null : Number(target.value)),
    );
    $("event-sign").addEventListener("change", ({ target }) =>
      this.#choose(this.groups.query, target.value === "" ? null : Number(target.value)),
    );
    $("event-pause").addEventListener("click", () => this.#turn());
    const refresh = coalesced(() => this.refresh(), REFRESH_MS);
    this.store.on("events queries", refresh);
    this.refresh();
  }

  /** Show the events of one query; null for all. */
  filterBy(query) {
    this.#choose(query, this.groups.sign);
  }

  /** List the events of the store again, after others have taken their place. */
  again() {
    this.#choose(this.groups.query, this.groups.sign);
  }

  /** The number of the query whose events alone are shown; null for all. */
  get query() {
    return this.groups.query;
  }

  refresh() {
    if (this.open()) this.store.readEvents();
    setText($("unread"), this.store.unread > 0 ? (this.store.unread > 999 ? "999+" : String(this.store.unread)) : "");
    $("unread").setAttribute(
      "aria-label",
      this.store.unread > 0 ? filled(gettext("%(count)s unread"), { count: count(this.store.unread) }) : "",
    );
    this.#options();
    if (!this.open()) return;
    this.#draw(this.groups.take(this.store.events));
    this.#showPause();
  }

  #choose(query, sign) {
    this.groups.choose(query, sign);
    this.onFilter();
    this.list.replaceChildren();
    this.refresh();
  }

  #turn() {
    if (this.groups.paused) this.groups.resume();
    else this.groups.pause();
    this.refresh();
  }

  #showPause() {
    const { paused, waiting } = this.groups;
    $("event-pause")
      .querySelector("use")
      .setAttribute("href", paused ? "#icon-play" : "#icon-pause");
    setText(
      $("event-pause-text"),
      paused ? filled(gettext("Resume (%(count)s new)"), { count: count(waiting) }) : gettext("Pause"),
    );
  }

  /** Put the rows of the groups that changed (newest last) on top of the list. */
  #draw(changed) {
    const focused = changed.find((group) => this.rows.get(group)?.contains(document.activeElement));
    const at = focused && [...this.rows.get(focused).querySelectorAll("button")].indexOf(document.activeElement);
    const fresh = changed.reverse().map((group) => {
      this.rows.get(group)?.remove();
      return this.#row(group);
    });
    this.list.prepend(...fresh);
    while (this.list.children.length > GROUPS_KEPT) this.list.lastChild.remove();
    $("events-empty").hidden = this.list.children.length > 0;
    // A replaced element loses the focus.
    if (focused) this.rows.get(focused).querySelectorAll("button")[at]?.focus({ preventScroll: true });
  }

  #row(group) {
    const row = h(
      "li",
      {},
      group.events.length > 1 ? this.#several(group) : this.#withWhy(group.newest, this.#single(group.newest)),
    );
    this.rows.set(group, row);
    if (this.expanded.has(group)) row.append(this.#eventsOf(group));
    return row;
  }

  #single(event) {
    const name = event.key ? `${event.queryName} \u00b7 ` : ""; // without an object, the head is the name of the query
    const about = event.threshold ? gettext("threshold") : `${name}${this.#what(event)}`;
    return this.#button(event, headOf(event), about, { onclick: () => this.onPick(event) });
  }

  #several(group) {
    const { newest } = group;
    const reportsAll = this.store.queries.get(newest.query)?.plan?.emit === "all";
    const about = `${newest.threshold ? gettext("threshold") : newest.queryName} \u00b7 ${timesText(group, reportsAll)}`;
    const expanded = String(this.expanded.has(group));
    return this.#button(newest, headOf(newest), about, {
      "aria-expanded": expanded,
      onclick: () => this.#toggle(group),
    });
  }

  #toggle(group) {
    const row = this.rows.get(group);
    if (this.expanded.delete(group)) row.lastChild.remove();
    else {
      this.expanded.add(group);
      row.append(this.#eventsOf(group));
    }
    row.firstChild.setAttribute("aria-expanded", String(this.expanded.has(group)));
  }

  #eventsOf(group) {
    const one = (event) => {
      const about = event.threshold ? crossingText(event) : this.#what(event);
      const button = this.#button(event, null, about, {
        class: "event-single quiet",
        onclick: () => this.onPick(event),
      });
      return h("li", {}, this.#withWhy(event, button));
    };
    const earlier = group.entered + group.left - group.events.length;
    const rest =
      earlier > 0
        ? h("li", { class: "event-earlier" }, filled(gettext("and %(count)s earlier"), { count: count(earlier) }))
        : null;
    return h("ul", { class: "event-singles" }, ...group.events.map(one), rest);
  }

  /** Say why an event was; of an alarm about whole answers, what the numbers were. */
  #what(event) {
    const plan = event.key ? null : this.store.queries.get(event.query)?.plan;
    if (!(event.sign > 0)) return why(event);
    const nameOf = (number) => this.#nameOf(number);
    return kindOf(plan).alarm?.(plan, parsed(event.text ?? "{}"), nameOf) || why(event);
  }

  #nameOf(number) {
    return this.store.queries.get(number)?.name ?? filled(gettext("query %(number)s"), { number });
  }

  /** Return the button of an event with one beside it that asks why it was. */
  #withWhy(event, button) {
    const name = title(event.key || event.queryName, parsed(event.text ?? "{}"));
    const about = filled(gettext("Why? %(name)s, %(sign)s at %(time)s"), {
      name,
      sign: signWord(event),
      time: utcClock(event.timeMs),
    });
    const asking = h(
      "button",
      { type: "button", class: "event-why quiet", "aria-label": about, onclick: () => this.onWhy(event) },
      gettext("Why?"),
    );
    return h("div", { class: "event-row" }, button, asking);
  }

  #button(event, head, about, attributes) {
    const sign = h(
      "span",
      { class: "sign", "data-sign": event.sign, "aria-label": signWord(event) },
      SIGNS[event.sign],
    );
    sign.style.setProperty("--colour", `var(--q${event.colour})`);
    const text = h("span", { class: "event-text" }, head, h("span", { class: "event-about" }, about));
    const hint = `${utcTime(event.timeMs)}\n${place(event.lon, event.lat)}${between(event)}`;
    const time = h("time", { datetime: isoTime(event.timeMs) }, utcClock(event.timeMs));
    const more = "aria-expanded" in attributes ? icon("down") : null;
    return h("button", { type: "button", class: "event quiet", title: hint, ...attributes }, sign, text, time, more);
  }

  #options() {
    const select = $("event-filter");
    const queries = this.store.listed();
    const wanted = JSON.stringify(queries.map((q) => [q.query, q.name]));
    if (this.options !== wanted) {
      this.options = wanted;
      select.replaceChildren(
        new Option(gettext("All queries"), ""),
        ...queries.map((q) => new Option(q.name, q.query)),
      );
    }
    select.value = this.groups.query === null ? "" : String(this.groups.query);
    if (select.selectedIndex < 0) this.filterBy(null);
  }
}

/** Say why there is an event; for a told pair, how close in time its reports were; for an encounter, from when until when. */
function why(event) {
  if (event.met) return spanText(event);
  if (event.interpolated) return filled(gettext("%(why)s, interpolated"), { why: reason(event.reason, event.sign) });
  return event.told ? toldText(event) : reason(event.reason, event.sign);
}

/** Say between which reports an event was interpolated, on a line of its own; nothing for an event at a report. */
function between({ interpolated, fromMs, toMs }) {
  return interpolated
    ? `\n${filled(gettext("between reports at %(from)s and %(to)s"), { from: utcClock(fromMs), to: utcClock(toMs) })}`
    : "";
}

/** Return the head of an event's row: what happened to which object. */
function headOf(event) {
  const name = title(event.key || event.queryName, parsed(event.text));
  return h(
    "span",
    { class: "event-head" },
    h("span", { class: "event-name" }, happened(name, event)),
    keyBeside(name, event),
  );
}

/** Return the key to show beside an object's name, since names may repeat and keys do not; null without a name. */
function keyBeside(name, { key, threshold }) {
  return threshold || !key || name === key ? null : h("span", { class: "event-key" }, key);
}

function signWord({ sign, threshold, told, met }) {
  if (told) return gettext("met");
  if (met) return sign > 0 ? gettext("meets") : gettext("parted");
  if (threshold) return sign > 0 ? gettext("crossed") : gettext("no longer crossed");
  return sign > 0 ? gettext("entered") : gettext("left");
}

function isoTime(ms) {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : "";
}

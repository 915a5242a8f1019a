// The panel of an explanation: what decides, the tree of terms, the report, the times on its way, and the deliveries.

import { $, h, setText } from "../dom.js";
import { place, properties, utcTime } from "../format.js";
import { filled, gettext } from "../i18n.js";
import { fill } from "../objects/object-panel.js";
import {
  attemptText,
  deciding,
  deliveryText,
  inUnits,
  joinedText,
  lagRows,
  markOf,
  subjectText,
  heading,
} from "./words.js";

const SOURCES = {
  engine: gettext("as the engine knows it now"),
  event: gettext("as the event has it"),
  history: gettext("the last stored one"),
};

export class WhyPanel {
  onClose;
  onRefresh;

  /** @param {Record<string, any>} parts `onClose()`; `onRefresh()` */
  constructor(parts) {
    Object.assign(this, parts);
    this.panel = $("why-panel");
    $("why-close").addEventListener("click", () => this.close());
    $("why-refresh").addEventListener("click", () => this.onRefresh());
  }

  get open() {
    return !this.panel.hidden;
  }

  /** How many pixels of the right side of the map it covers; 0 if it lies across all of it. */
  get covers() {
    const [panel, map] = [this.panel, $("map")].map((element) => element.getBoundingClientRect());
    return panel.width > map.width / 2 ? 0 : map.right - panel.left;
  }

  /** Open the panel before the answer comes; the focus goes to it, and to `opener` when it closes. */
  begin(title, about, opener) {
    this.opener = opener;
    this.panel.hidden = false;
    setText($("why-title"), title);
    setText($("why-about"), about);
    setText($("why-state"), gettext("Asking…"));
    $("why-told").hidden = true;
    $("why-refresh").hidden = true;
    $("why-title").focus({ preventScroll: true });
  }

  close() {
    if (!this.open) return false;
    this.panel.hidden = true;
    this.onClose();
    if (this.opener?.isConnected) this.opener.focus({ preventScroll: true });
    this.opener = null;
    return true;
  }

  /** Say what went wrong. */
  fail(text) {
    setText($("why-state"), text);
    $("why-told").hidden = true;
  }

  /** Show what the server told about the object of a key. */
  show(told, key) {
    setText($("why-title"), subjectText(told, key));
    setText($("why-about"), told.name);
    setText($("why-state"), "");
    $("why-refresh").hidden = Boolean(told.event || told.incident);
    const { why } = told;
    $("why-verdict").dataset.holds = String(why.holds);
    $("why-verdict").replaceChildren(mark(why), h("span", {}, heading(told)));
    const decide = deciding(why);
    $("why-deciding").hidden = decide.length === 0;
    $("why-deciding").replaceChildren(...decide.map((term) => h("li", {}, decidingText(term))));
    $("why-tree").replaceChildren(...(why.parts ?? [why]).map(branch));
    $("why-notes").replaceChildren(...told.notes.map((note) => h("li", {}, note)));
    this.#fix(told.fix);
    this.#lag(told.lag ?? []);
    this.#deliveries(told);
    $("why-told").hidden = false;
  }

  #fix(fix) {
    $("why-fix").hidden = !fix;
    if (!fix) return;
    setText($("why-fix-source"), SOURCES[fix.source] ?? "");
    const rows = [[gettext("Time"), utcTime(Date.parse(fix.time))]];
    if (fix.lon !== null) rows.push([gettext("Position"), place(fix.lon, fix.lat)]);
    fill($("why-fix-properties"), [...rows, ...properties(fix.properties)]);
  }

  #lag(lag) {
    $("why-lag").hidden = lag.length === 0;
    const row = ({ text, at, after }) =>
      h("li", {}, h("span", {}, text), h("span", { class: "why-at" }, at), h("span", { class: "why-after" }, after));
    $("why-lag-steps").replaceChildren(...lagRows(lag).map(row));
  }

  #deliveries({ incident, deliveries = [] }) {
    $("why-deliveries").hidden = !incident;
    $("why-undelivered").hidden = deliveries.length > 0;
    const attempt = (one) =>
      h("li", {}, h("span", { class: "why-at" }, utcTime(Date.parse(one.at))), ` ${attemptText(one)}`);
    const row = (one) =>
      h("li", { "data-state": one.state }, deliveryText(one), h("ul", {}, ...one.attempts.map(attempt)));
    $("why-delivered").replaceChildren(...deliveries.map(row));
  }
}

function mark(term) {
  const [sign, words] = markOf(term);
  return h("span", { class: "why-mark", "data-holds": String(term.holds), role: "img", "aria-label": words }, sign);
}

function decidingText(term) {
  const words = inUnits(term.asks);
  return h(
    "span",
    {},
    h("b", {}, inUnits(term.found) || words),
    term.found ? h("span", { class: "why-asked" }, filled(gettext("asked: %(words)s"), { words })) : null,
  );
}

/** A term of the tree, with its parts. Parts that only say more are folded away. */
function branch(term) {
  const joined = joinedText(term);
  const found = term.found ? h("span", { class: "why-found" }, inUnits(term.found)) : null;
  const text = h("span", { class: "why-term" }, h("span", { class: "why-asks" }, inUnits(term.asks)), found);
  const item = h(
    "li",
    { class: term.decides ? "why-decides" : false },
    h("div", { class: "why-row" }, mark(term), text),
  );
  if (!term.parts?.length) return item;
  const parts = h("ul", {}, ...term.parts.map(branch));
  if (term.of === "told") item.append(h("details", {}, h("summary", {}, gettext("More about it")), parts));
  else item.append(joined ? h("p", { class: "why-joined" }, joined) : "", parts);
  return item;
}

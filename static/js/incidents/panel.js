// The list of incidents: filters, rows that open, the actions on each, and its audit log.

import { $, coalesced, h, icon, repeated, setText } from "../dom.js";
import { count, place, utcClock, utcTime } from "../format.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { kindOf } from "../kinds/registry.js";
import { AcknowledgeAll } from "./acknowledge-all.js";
import { severityText } from "./severities.js";
import { passes, snoozed } from "./store.js";
import { changeText, headline, keyBeside, openText, standing, timesText, worst } from "./words.js";

const REFRESH_MS = 250;
const CLOCK_MS = 10_000; // snoozes end with time alone
const MOST_ROWS = 500;
// How long an incident can be silenced, in minutes.
const SNOOZES = [
  [15, gettext("15 minutes")],
  [60, gettext("1 hour")],
  [480, gettext("8 hours")],
  [1440, gettext("1 day")],
];
const SIGNS = { info: "i", warning: "!", critical: "!!" };

export class IncidentPanel {
  store;
  now;
  pages;
  ask;
  open;
  onPick;
  onChoose = () => {}; // called when an incident is opened or closed
  onWhy;
  onWay;
  onError;

  /**
   * @param {Record<string, any>} parts `store`; `now()`, the server's time; `pages`, an IncidentPages; `ask(message)`, returning a promise of
   *   the reply; `open()`, whether the list is in view; `onPick(incident)`, which shows its object; `onWhy(incident)`; `onWay(incident)`, returning a
   *   promise of how many reports were found; `onError(text)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.rows = new Map(); // number -> {element, shown, incident, more}
    this.chosen = null; // the number of the incident that is opened
    this.detail = null; // its audit log, once it has come
    this.list = $("incident-list");
    this.all = new AcknowledgeAll(parts);
    this.form = $("incident-filters");
    this.form.addEventListener("change", () => this.reload());
    this.form.addEventListener("submit", (event) => event.preventDefault());
    $("incident-more").addEventListener("click", () => this.pages.showMore());
    const refresh = coalesced(() => this.refresh(), REFRESH_MS);
    this.store.on("incidents", () => this.#follow());
    this.store.on("incidents queries streams", refresh);
    repeated(() => this.refresh(), CLOCK_MS);
    this.refresh();
  }

  /** Ask for the list anew. */
  async reload() {
    const { incidents } = this.store;
    const since = incidents.newest;
    this.refresh();
    const numbers = await this.pages.reload(this.filters);
    if (numbers) incidents.retain(numbers.add(this.chosen), since);
    this.refresh();
  }

  /** The filters, as `passes` has them. */
  get filters() {
    const { severity, state, query, mine } = this.form.elements;
    return {
      severity: severity.value || null,
      state: state.value || null,
      query: query.value ? Number(query.value) : null,
      assigned: mine.checked ? this.store.user : null,
    };
  }

  refresh() {
    const { incidents } = this.store;
    setText($("incident-count"), incidents.total > 0 ? (incidents.total > 999 ? "999+" : String(incidents.total)) : "");
    $("incident-count").dataset.severity = worst(incidents.open) ?? "";
    $("incident-count").setAttribute(
      "aria-label",
      incidents.total > 0 ? filled(gettext("%(count)s open"), { count: count(incidents.total) }) : "",
    );
    if (!this.open()) return;
    setText($("incident-total"), openText(incidents.open));
    this.#options();
    this.#draw();
    const filtered = Object.values(this.filters).some((filter) => filter !== null);
    $("incidents-empty").hidden = this.list.children.length > 0;
    setText(
      $("incidents-empty-title"),
      filtered ? gettext("No incident passes the filters") : gettext("No incidents yet"),
    );
    $("incident-more").hidden = !this.pages.more;
  }

  /** Open an incident that is perhaps not in the list, or does not pass its filters; say so if there is none that the user sees. */
  async show(number) {
    try {
      const { incident } = await this.ask({ type: "incident.get", incident: number });
      this.store.apply({ type: "incident.status", incidents: [incident] }, this.now());
      if (!passes(incident, this.filters, this.now())) this.form.reset();
      await this.choose(number);
    } catch (error) {
      this.onError(error.message);
    }
  }

  /** Open an incident, or close it again. */
  async choose(number) {
    const before = this.chosen;
    this.chosen = before === number ? null : number;
    this.detail = null;
    this.onChoose();
    this.refresh();
    if (this.chosen === null) return;
    this.rows.get(number).element.scrollIntoView({ block: "nearest" });
    this.onPick(this.store.incidents.known.get(number));
    await this.#log(number);
  }

  /** The audit log of the opened incident is asked for again when the incident changes. */
  #follow() {
    const now = this.store.incidents.known.get(this.chosen);
    if (now && this.detail && this.detail.of !== now) this.#log(this.chosen);
  }

  async #log(number) {
    const of = this.store.incidents.known.get(number);
    try {
      const detail = await this.ask({ type: "incident.get", incident: number });
      if (this.chosen !== number) return;
      this.detail = { ...detail, of };
      this.refresh();
    } catch (error) {
      this.onError(error.message);
    }
  }

  /** Write the rows that changed, in their order. A row that has the focus keeps it. */
  #draw() {
    const nowMs = this.now();
    const listed = this.store.incidents
      .listed(this.filters, nowMs)
      .filter(({ incident }, i) => i < MOST_ROWS || incident === this.chosen);
    this.all.show(listed);
    const elements = listed.map((incident) => this.#row(incident, nowMs));
    const numbers = new Set(listed.map(({ incident }) => incident));
    for (const [number, { element }] of this.rows) {
      if (numbers.has(number)) continue;
      element.remove();
      this.rows.delete(number);
    }
    const focused = document.activeElement;
    elements.forEach((element, i) => {
      if (this.list.children[i] !== element) this.list.insertBefore(element, this.list.children[i] ?? null);
    });
    // What is moved loses the focus.
    if (focused !== document.activeElement && this.list.contains(focused)) focused.focus({ preventScroll: true });
  }

  #row(incident, nowMs) {
    const { incident: number } = incident;
    const opened = this.chosen === number;
    const row = this.rows.get(number) ?? { element: h("li", {}), main: null, more: null };
    this.rows.set(number, row);
    const state = incident.closed
      ? "closed"
      : snoozed(incident, nowMs)
        ? "snoozed"
        : incident.acknowledged
          ? "seen"
          : "new";
    const shown = JSON.stringify([
      headline(incident),
      keyBeside(incident),
      this.#about(incident),
      standing(incident, nowMs),
      state,
      opened,
    ]);
    if (row.shown !== shown) {
      row.shown = shown;
      row.element.className = "incident";
      Object.assign(row.element.dataset, { severity: incident.severity, state });
      const main = this.#main(incident, opened, nowMs);
      const focused = row.main?.contains(document.activeElement);
      if (row.main) row.main.replaceWith(main);
      else row.element.append(main);
      row.main = main;
      if (focused) main.focus({ preventScroll: true });
    }
    if (opened) this.#open(row, incident, nowMs);
    else if (row.more) {
      row.more.element.remove();
      row.more = null;
    }
    return row.element;
  }

  #main(incident, opened, nowMs) {
    const { incident: number, severity, lon, lat, closed } = incident;
    const state = filled(closed ? gettext("%(severity)s, closed") : gettext("%(severity)s, open"), {
      severity: severityText(severity),
    });
    const mark = h("span", { class: "severity", "data-severity": severity, "aria-label": state }, SIGNS[severity]);
    const key = keyBeside(incident);
    const head = h(
      "span",
      { class: "event-head" },
      h("span", { class: "event-name" }, headline(incident)),
      key && h("span", { class: "event-key" }, key),
    );
    const stands = standing(incident, nowMs);
    const about = h("span", { class: "event-about" }, [this.#about(incident), stands].filter(Boolean).join(" \u00b7 "));
    const hint = [timesText(incident), lon === null ? "" : place(lon, lat)].filter(Boolean).join("\n");
    const time = h("time", { datetime: incident.opened }, utcClock(Date.parse(incident.opened)));
    const attributes = {
      type: "button",
      class: "event quiet",
      title: hint,
      "aria-expanded": String(opened),
      onclick: () => this.choose(number),
    };
    return h("button", attributes, mark, h("span", { class: "event-text" }, head, about), time, icon("down"));
  }

  /** Say by which query an incident is; of one about whole answers, whose head says that, what the numbers were. */
  #about({ key, query, name, properties }) {
    const plan = key ? null : this.store.queries.get(query)?.plan;
    const nameOf = (number) => this.store.queries.get(number)?.name ?? filled(gettext("query %(number)s"), { number });
    const about = kindOf(plan).alarm?.(plan, properties, nameOf) || name;
    const last = Date.parse(properties?.last_report ?? "");
    if (!Number.isFinite(last)) return about;
    return filled(gettext("%(about)s; last report %(time)s"), { about, time: utcTime(last) });
  }

  /** Show what can be done about an incident, and its audit log. The fields keep what is typed. */
  #open(row, incident, nowMs) {
    row.more ??= this.#more(incident);
    if (row.more.element.parentElement !== row.element) row.element.append(row.more.element);
    const { more } = row;
    const silent = snoozed(incident, nowMs);
    const acts = this.detail?.acts !== false; // a viewer of a team only looks
    more.comment.hidden = !acts;
    for (const [name, shown] of Object.entries({
      acknowledge: !incident.closed && !incident.acknowledged,
      assign: !incident.closed,
      snooze: !incident.closed && !silent,
      wake: silent,
      close: !incident.closed,
    })) {
      more[name].hidden = !shown || !acts;
    }
    more.way.hidden = incident.lon === null || !this.store.streams.get(incident.stream)?.stored;
    setText(more.times, timesText(incident));
    if (!this.detail || more.detail === this.detail) return;
    more.detail = this.detail;
    more.people(this.detail.people, incident.assigned_to);
    const line = ({ at, ...change }) =>
      h(
        "li",
        {},
        h("time", { datetime: at, title: utcTime(Date.parse(at)) }, utcClock(Date.parse(at))),
        h("span", {}, changeText(change)),
      );
    more.log.replaceChildren(...this.detail.changes.map(line));
  }

  #more({ incident: number }) {
    const act = (what, fields = {}) => this.#act({ type: `incident.${what}`, incident: number, ...fields });
    const button = (text, run, name = "") =>
      h("button", { type: "button", class: `small ${name}`, onclick: run }, text);
    const acknowledge = button(gettext("Acknowledge"), () => act("acknowledge"), "primary");
    const close = button(gettext("Close"), () => act("close"));
    const wake = button(gettext("Wake"), () => act("wake"));
    const way = button(gettext("Way, 5 min before and after"), () => this.#way(number, found));
    const why = button(gettext("Why?"), () => this.onWhy(this.store.incidents.known.get(number)));
    const found = h("p", { class: "hint", role: "status" });

    const snooze = h(
      "select",
      { class: "incident-choice", "aria-label": gettext("Snooze for") },
      new Option(gettext("Snooze for…"), ""),
      ...SNOOZES.map(([minutes, text]) => new Option(text, minutes)),
    );
    snooze.addEventListener("change", () => {
      const until = new Date(this.now() + Number(snooze.value) * 60_000).toISOString();
      if (snooze.value) act("snooze", { until });
      snooze.value = "";
    });
    const assign = h("select", { class: "incident-choice", "aria-label": gettext("Assign to") });
    assign.addEventListener("change", () => act("assign", { to: assign.value || null }));
    const people = (names, chosen) => {
      const all = chosen && !names.includes(chosen) ? [chosen, ...names] : names;
      const option = (name) =>
        new Option(
          filled(name === this.store.user ? gettext("For %(name)s (you)") : gettext("For %(name)s"), { name }),
          name,
        );
      assign.replaceChildren(new Option(gettext("For nobody"), ""), ...all.map(option));
      assign.value = chosen ?? "";
    };
    people([], null);

    const text = h("input", {
      type: "text",
      maxlength: 2000,
      placeholder: gettext("Comment"),
      "aria-label": gettext("Comment"),
      autocomplete: "off",
    });
    const comment = h(
      "form",
      { class: "incident-comment" },
      text,
      h("button", { type: "submit", class: "small" }, gettext("Add")),
    );
    comment.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (text.value.trim() && (await act("comment", { text: text.value }))) text.value = "";
    });
    const times = h("p", { class: "hint" });
    const log = h("ul", { class: "incident-log", "aria-label": gettext("What happened to the incident") });
    const actions = h("div", { class: "incident-actions" }, acknowledge, why, close, wake, snooze, assign);
    const element = h(
      "div",
      { class: "incident-detail" },
      times,
      actions,
      comment,
      h("div", { class: "incident-way" }, way, found),
      log,
    );
    return { element, acknowledge, close, wake, snooze, assign, comment, way, people, times, log, detail: null };
  }

  /** Carry out an action; return whether the server did. */
  async #act(message) {
    const within = this.rows.get(message.incident)?.more?.element.contains(document.activeElement);
    try {
      this.store.apply(await this.ask(message), this.now());
      await this.#log(message.incident);
      // What was pressed may be hidden now, and the focus would be lost.
      if (within && !document.activeElement?.closest(".incident-detail"))
        this.rows.get(message.incident)?.main.focus({ preventScroll: true });
      return true;
    } catch (error) {
      this.onError(error.message);
      return false;
    }
  }

  async #way(number, found) {
    setText(found, gettext("Searching…"));
    try {
      const reports = await this.onWay(this.store.incidents.known.get(number));
      const text = ngettext(
        "%(count)s report is on the map, and in History.",
        "%(count)s reports are on the map, and in History.",
        reports,
      );
      setText(
        found,
        reports > 0 ? filled(text, { count: count(reports) }) : gettext("Nothing is stored for these ten minutes."),
      );
    } catch (error) {
      setText(found, error.message);
    }
  }

  #options() {
    const { query } = this.form.elements;
    const names = new Map([...this.store.incidents.known.values()].map((incident) => [incident.query, incident.name]));
    for (const one of this.store.listed()) if (one.severity) names.set(one.query, one.name);
    const chosen = query.value;
    if (chosen && !names.has(Number(chosen))) names.set(Number(chosen), query.selectedOptions[0].textContent);
    const wanted = JSON.stringify([...names].sort(([a], [b]) => a - b));
    if (this.offered === wanted) return;
    this.offered = wanted;
    query.replaceChildren(
      new Option(gettext("All queries"), ""),
      ...JSON.parse(wanted).map(([number, name]) => new Option(name, number)),
    );
    query.value = chosen;
  }
}

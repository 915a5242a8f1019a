// The form for questions to stored tables, and the table of their answers.

import { $, h, offer, setText } from "../dom.js";
import { bothTimes, count, isUtc, label, length, PREDICATES, title, value } from "../format.js";
import { normalisedBox, roundedBox } from "../geometry.js";
import {
  boxAround,
  chosen,
  faultsOf,
  formTime,
  isPoint,
  LIMITS,
  missing,
  ofOneDay,
  placeOf,
  propertyNames,
  questionOf,
  rowTime,
  SPANS,
  spanOf,
  summary,
  tableOf,
  timeOf,
} from "./history.js";
import { filled, gettext } from "../i18n.js";
import { measureFields } from "../measure-field.js";
import { pageEvents } from "../page-events.js";
import { LENGTH } from "../quantities.js";

const FIELDS = ["table", "key", "partner", "distance", "box", "span", "form"];
const MOST_ROWS = 500;
const MOST_COLUMNS = 12;

export class HistoryPanel {
  store;
  layer;
  editor;
  now;
  view;
  ask;
  onOpen;
  onPick;
  onBox;

  /**
   * @param {Record<string, any>} parts `store`; `layer`, a HistoryLayer; `editor`, of rectangles; `now()`; `view()`, the map's rectangle;
   *   `ask(message)`, returning a promise of the answer; `onOpen()`; `onPick(row)` and `onBox(box)`, which bring them into view
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("history-form");
    this.details = $("history-question");
    this.rectangle = null;
    this.rows = [];
    this.asked = 0;
    this.picked = new Set(); // choices that the user made
    const { elements } = this.form;
    this.measures = measureFields(elements, { distance: LENGTH });
    elements.predicate.replaceChildren(...PREDICATES.map(([name, , words]) => new Option(words, name)));
    const spans = Object.entries(SPANS).map(([name, [, words]]) => new Option(words, name));
    elements.span.replaceChildren(
      ...spans,
      new Option(gettext("All times"), "all"),
      new Option(gettext("From \u2026 to \u2026"), "custom"),
    );
    elements.limit.replaceChildren(...LIMITS.map((limit) => new Option(count(limit), String(limit))));
    pageEvents.on("units", () => this.#table());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    this.form.addEventListener("change", ({ target }) => this.#changed(target.name));
    $("history-draw").addEventListener("click", () => this.editor.draw());
    $("history-clear").addEventListener("click", () => this.clear());
    $("panel").addEventListener("tab", () => $("pane-history").hidden && this.editor.stop());
    $("history-rows").addEventListener("click", ({ target }) => {
      const row = target.closest("tr[data-row]");
      if (row) this.select(Number(row.dataset.row), true);
    });
    this.zone = elements.zone.value;
    this.store.on("streams layers", () => this.#tables());
    this.#tables();
    this.#changed();
  }

  /** Ask at once where and when an object of a stored stream was, in the last day. */
  trace(stream, key) {
    this.#ofObject(stream, key);
    this.form.elements.span.value = "day";
    this.#changed();
    this.onOpen();
    this.run();
  }

  /** Draw where an object of a stored stream was in a span of time `{from, to}` in milliseconds; return a promise of its rows. */
  async traceSpan(stream, key, { from, to }) {
    this.clear();
    this.#ofObject(stream, key);
    const { elements } = this.form;
    elements.span.value = "custom";
    elements.from.value = formTime(from, elements.zone.value);
    elements.to.value = formTime(to, elements.zone.value);
    this.#changed();
    await this.run();
    const error = $("history-error-form").textContent;
    if (error) throw new Error(error);
    return this.rows;
  }

  #ofObject(stream, key) {
    const { elements } = this.form;
    elements.join.checked = false;
    elements.table.value = `stored:${stream}`;
    this.picked.add("table");
    elements.key.value = key;
    elements.where.value = "everywhere";
  }

  /** Take over a rectangle that was drawn. */
  showRectangle(rectangle) {
    this.rectangle = rectangle;
    this.#changed();
    this.#error("box", "");
  }

  /** Forget the answer, and ignore the answers that are still to come. */
  clear() {
    this.asked++;
    this.editor.stop();
    this.#forget();
  }

  #forget() {
    this.rows = [];
    this.layer.clear();
    $("history-results").hidden = true;
    this.details.open = true;
  }

  async run() {
    const fields = this.#read();
    const faults = faultsOf(fields);
    this.#errors(faults);
    if (Object.keys(faults).length > 0) return;
    const question = questionOf(fields);
    const turn = ++this.asked;
    $("history-run").disabled = true;
    setText($("history-run"), gettext("Searching\u2026"));
    try {
      const answer = await this.ask(question);
      if (turn === this.asked) this.#show(question, fields, answer);
    } catch (error) {
      if (turn !== this.asked) return;
      this.#forget();
      this.#errors({ form: error.message });
    } finally {
      $("history-run").disabled = false;
      setText($("history-run"), gettext("Search"));
    }
  }

  /** Mark a row, in the table and on the map; `zoom` brings its place into view. */
  select(index, zoom = false) {
    for (const old of $("history-rows").querySelectorAll("[aria-selected=true]"))
      old.setAttribute("aria-selected", "false");
    this.layer.select(index);
    const element = $("history-rows").querySelector(`[data-row="${index}"]`);
    element?.setAttribute("aria-selected", "true");
    if (!zoom) element?.scrollIntoView({ block: "nearest" });
    else this.onPick(this.rows[index]);
  }

  #read() {
    const { elements } = this.form;
    const join = elements.join.checked;
    const table = tableOf(elements.table.value);
    const fields = {
      table,
      join,
      key: join ? "" : elements.key.value.trim(),
      partner: tableOf(elements.partner.value),
      predicate: elements.predicate.value,
      distance: this.measures.distance.own,
      where: elements.where.value,
      box: this.#box(),
      span: elements.span.value,
      from: elements.from.value,
      to: elements.to.value,
      zone: elements.zone.value,
      limit: Number(elements.limit.value),
    };
    const faulty = Object.keys(faultsOf(fields)).length > 0;
    return faulty ? fields : { ...fields, span: spanOf(fields, this.#nowOf(table)), spanName: fields.span };
  }

  #box() {
    const { where } = this.form.elements;
    if (where.value === "everywhere") return null;
    const rectangle = where.value === "view" ? this.view() : this.rectangle;
    return rectangle && roundedBox(normalisedBox(rectangle));
  }

  /** Return a table's own time, that of its stream's newest element, so that the last hour of a replay is an hour of the replay. */
  #nowOf(table) {
    const ms = this.store.streamTimeMs(table?.stored, this.now());
    return Number.isFinite(ms) ? ms : this.now() + this.store.clockOffsetMs;
  }

  #show(question, fields, { rows, truncated }) {
    this.rows = question.type === "table.get" ? chosen(rows, fields.box, fields.span) : rows;
    this.details.open = false;
    this.editor.stop();
    this.layer.show(this.rows, fields.where === "rectangle" ? fields.box : null);
    $("history-results").hidden = false;
    $("pane-history").scrollTop = 0;
    setText($("history-summary"), summary(this.rows));
    $("history-truncated").hidden = !truncated;
    setText($("history-truncated"), truncated ? missing(question, this.rows.length) : "");
    this.#table();
    const around = boxAround(this.rows);
    if (around && fields.where === "everywhere") this.onBox(around);
  }

  #table() {
    const shown = this.rows.slice(0, MOST_ROWS);
    $("history-rows").parentElement.hidden = shown.length === 0;
    const paired = shown.some(({ partner }) => partner);
    const timed = shown.some((row) => !Number.isNaN(timeOf(row)));
    const names = propertyNames(shown, MOST_COLUMNS);
    const oneDay = ofOneDay(shown);
    const times = shown.some(({ partner }) => partner?.time);
    const pairs = paired ? [gettext("With"), ...(times ? [gettext("Its time")] : []), gettext("Distance")] : [];
    const heads = [...(timed ? [gettext("Time (UTC)")] : []), gettext("Key"), ...pairs, ...names.map(label)];
    $("history-rows").replaceChildren(
      h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...shown.map((row, i) => this.#row(row, i, { timed, paired, times, names, oneDay }))),
    );
    $("history-more").hidden = this.rows.length <= MOST_ROWS;
    const more = gettext("The table shows the first %(shown)s rows. The map shows all %(count)s.");
    setText($("history-more"), filled(more, { shown: count(MOST_ROWS), count: count(this.rows.length) }));
  }

  #row(row, i, { timed, paired, times, names, oneDay }) {
    const known = row.properties ?? {};
    const partner = row.partner ?? {};
    const swatch = h("span", { class: "history-key", "aria-hidden": "true" });
    swatch.style.background = this.layer.colourOf(row.key);
    const name = title(row.key, known);
    const open = h("button", { type: "button", class: "quiet" }, timed ? rowTime(row, oneDay) || "\u2013" : name);
    const key = [swatch, name === row.key ? row.key : `${name} (${row.key})`];
    const distance = Number.isFinite(partner.distance) ? length(partner.distance) : "";
    const pair = [
      title(partner.key ?? "", partner.properties ?? {}),
      ...(times ? [rowTime(partner, oneDay)] : []),
      distance,
    ];
    return h(
      "tr",
      { "data-row": i, "aria-selected": "false" },
      ...(timed ? [h("td", {}, open), h("td", {}, ...key)] : [h("td", {}, swatch, open)]),
      ...(paired ? pair.map((text) => h("td", {}, text)) : []),
      ...names.map((column) => h("td", {}, known[column] === undefined ? "" : value(column, known[column]))),
    );
  }

  /** Offer the tables there are now, and keep what was chosen. */
  #tables() {
    const stored = [...this.store.streams.values()]
      .filter((stream) => stream.stored)
      .map(({ name, title: text }) => [`stored:${name}`, text ?? name]);
    const layers = [...this.store.layers.values()]
      .filter(({ version }) => version !== null)
      .map(({ name, title: text }) => [`layer:${name}`, text ?? name]);
    $("history-none").hidden = stored.length > 0;
    setText($("history-span"), this.#spanText());
    const wanted = JSON.stringify([stored, layers]);
    if (this.offered === wanted) return;
    this.offered = wanted;
    const first = { table: "", partner: layers[0]?.[0] ?? "" }; // streams are mostly paired with layers
    for (const [name, standard] of Object.entries(first)) {
      const select = this.form.elements[name];
      const kept = this.picked.has(name) && [...stored, ...layers].some(([known]) => known === select.value);
      offer(
        select,
        [
          [gettext("Stored streams"), stored],
          [gettext("Layers"), layers],
        ],
        kept ? select.value : standard,
      );
    }
    this.#changed();
  }

  #changed(name) {
    const { elements } = this.form;
    if (name) this.picked.add(name);
    if (name === "zone") this.#otherZone();
    this.zone = elements.zone.value;
    $("history-join").hidden = !elements.join.checked;
    $("history-key").hidden = elements.join.checked;
    $("history-distance").hidden = elements.predicate.value !== "dwithin";
    $("history-box").hidden = elements.where.value !== "rectangle";
    elements.zone[0].closest(".segments").hidden = isUtc(this.now());
    $("history-times").hidden = elements.span.value !== "custom";
    const tables = [elements.table.value, ...(elements.join.checked ? [elements.partner.value] : [])];
    $("history-when").hidden = tables.every((table) => table.startsWith("layer:")); // features have no times
    if (name === "where") this.#turnRectangle();
    setText(
      $("history-drawn"),
      this.rectangle ? boxText(roundedBox(normalisedBox(this.rectangle))) : gettext("Nothing is drawn yet."),
    );
    setText($("history-span"), this.#spanText());
  }

  #turnRectangle() {
    if (this.form.elements.where.value !== "rectangle") return this.editor.stop();
    if (this.rectangle) this.editor.edit(this.rectangle);
    else this.editor.draw();
  }

  /** Show the same instants in the other zone. */
  #otherZone() {
    const { elements } = this.form;
    for (const field of [elements.from, elements.to]) {
      if (field.value)
        field.value = formTime(
          new Date(this.zone === "utc" ? `${field.value}Z` : field.value).getTime(),
          elements.zone.value,
        );
    }
  }

  #spanText() {
    const { elements } = this.form;
    const fields = {
      span: elements.span.value,
      from: elements.from.value,
      to: elements.to.value,
      zone: elements.zone.value,
    };
    const span = spanOf(fields, this.#nowOf(tableOf(elements.table.value)));
    if (!span) return "";
    const [from, to] = [span.from, span.to].map((ms) => (ms === null ? null : bothTimes(ms)));
    if (to === null) return filled(gettext("From %(from)s"), { from });
    return from === null
      ? filled(gettext("to %(to)s"), { to })
      : filled(gettext("From %(from)s to %(to)s"), { from, to });
  }

  #errors(errors) {
    for (const field of FIELDS) this.#error(field, errors[field] ?? "");
    const [first] = Object.keys(errors);
    if (!first) return;
    this.details.open = true;
    const target = first === "box" ? $("history-draw") : this.form.elements[first];
    target?.focus();
  }

  #error(field, text) {
    setText($(`history-error-${field}`), text);
    $(`history-error-${field}`).hidden = !text;
  }
}

function boxText({ lo, hi }) {
  return filled(gettext("%(from)s to %(to)s"), { from: lo.slice(0, 2).join(", "), to: hi.slice(0, 2).join(", ") });
}

/** Return what to bring into view for a row: `{place}` for a point, else `{box}`. */
export function viewOfRow(row) {
  return isPoint(row) ? { place: placeOf(row) } : { box: { lo: row.lo, hi: row.hi } };
}

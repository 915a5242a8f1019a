// The form for reports over stored elements, and what they answer: a table, a chart of days, the way of an object.

import { $, coalesced, offer, setText } from "../dom.js";
import { bothTimes, count, isUtc, title } from "../format.js";
import { boxAround, formTime, SPANS, spanOf } from "../history/history.js";
import { filled, gettext, ngettext } from "../i18n.js";
import { measureFields } from "../measure-field.js";
import { pageEvents } from "../page-events.js";
import { LENGTH, SPEED } from "../quantities.js";
import { placeText } from "../kinds/sketch/places.js";
import { daysChart } from "./days-chart.js";
import {
  areaOf,
  drawnRows,
  faultsOf,
  MEASURES,
  omissions,
  parametersOf,
  REPORTS,
  summary,
  wayOf,
} from "./questions.js";
import { ReportTable } from "./table.js";

const FIELDS = ["stream", "where", "span", "terms", "form"];
const OFFER_MS = 500; // the status of a thousand queries may come in a second
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const DRAWN = { rectangle: "here", polygon: "polygon" };
const TERMS = { gap_s: ["gap", 60], fastest_mps: ["fastest"], stop_m: ["stopM"], stop_s: ["stopMin", 60] };

export class ReportPanel {
  store;
  areas;
  layer;
  now;
  ask;
  stream;
  parameters;
  address;
  onOpen;
  onDraw;
  onBox;
  answer;
  asked = 0;
  drawn = false; // whether the map shows a way

  /**
   * @param {Record<string, any>} parts `store`; `areas`, a SketchAreas; `layer`, a HistoryLayer; `now()`; `ask(stream, parameters)`, a promise of
   *   the document; `address(stream, parameters)`; `onOpen()`; `onDraw()`, before a way is drawn; `onBox(box)`, which brings a box
   *   into view
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("report-form");
    this.details = $("report-question");
    this.measures = measureFields(this.form.elements, { fastest: SPEED, stopM: LENGTH });
    this.feature = null; // {layer, key, properties} of the area
    pageEvents.on("theme units", () => this.#redraw());
    this.names = new Map(); // by key; those of objects that have been in view
    this.table = new ReportTable($("report-rows"), {
      nameOf: (key) => this.#nameOf(key),
      onPick: (row) => this.#showWay(row),
      onDrawn: (shown, all) => {
        $("report-more").hidden = shown === all;
        const words = gettext(
          "The table shows the first %(shown)s of %(total)s rows. Sort it by another column to see others.",
        );
        setText($("report-more"), filled(words, { shown: count(shown), total: count(all) }));
      },
    });
    const { elements } = this.form;
    elements.report.replaceChildren(...Object.entries(REPORTS).map(([name, [words]]) => new Option(words, name)));
    elements.span.replaceChildren(
      ...Object.entries(SPANS).map(([name, [, words]]) => new Option(words, name)),
      new Option(gettext("From … to …"), "custom"),
    );
    elements.span.value = "day";
    $("report-measure").replaceChildren(...Object.entries(MEASURES).map(([name, words]) => new Option(words, name)));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    this.form.addEventListener("change", ({ target }) => this.#changed(target.name));
    $("report-draw").addEventListener("click", () => this.areas.draw(DRAWN[elements.where.value], true));
    $("report-clear").addEventListener("click", () => this.clear());
    $("report-measure").addEventListener("change", () => this.#chart());
    for (const input of document.querySelectorAll("[name=history-kind]"))
      input.addEventListener("change", () => this.#show(input.value));
    this.zone = elements.zone.value;
    this.store.on(
      "streams queries layers",
      coalesced(() => this.#offer(), OFFER_MS),
    );
    this.store.on("selection", () => this.#take(this.store.selectedFeature));
    this.#offer();
    this.#changed();
  }

  /** Open the form for the area of a feature `{layer, key, properties}`. */
  openFor(feature) {
    this.form.elements.where.value = "feature";
    this.#take(feature);
    this.#show("report");
    this.onOpen();
    this.details.open = true;
    this.form.elements.stream.focus();
  }

  /** Forget the answer, and ignore the one that is still to come. */
  clear() {
    this.asked++;
    this.areas.stop();
    this.#forget();
    this.#errors({});
  }

  /** Show the areas that were drawn. */
  showAreas() {
    this.#changed();
    this.#error("where", "");
  }

  /** Show everything again, in other colours or units. */
  #redraw() {
    this.table.draw();
    this.#chart();
  }

  async run() {
    const fields = this.#read();
    const faults = faultsOf(fields);
    this.#errors(faults);
    if (Object.keys(faults).length > 0) return;
    this.areas.stop();
    const parameters = parametersOf(fields, this.#nowOf(fields.stream));
    const turn = ++this.asked;
    this.#busy(true);
    try {
      const answer = await this.ask(fields.stream, parameters);
      if (turn === this.asked) this.#answered(fields, parameters, answer);
    } catch (error) {
      if (turn !== this.asked) return;
      this.#forget();
      this.#errors({ form: error.message });
    } finally {
      this.#busy(false);
    }
  }

  #answered({ stream, place }, parameters, answer) {
    if (stream !== this.stream) this.names.clear();
    Object.assign(this, { stream, parameters, answer });
    this.details.open = false;
    $("report-results").hidden = false;
    $("pane-history").scrollTop = 0;
    this.areas.show(place);
    this.#clearWay();
    const { terms, report, rows } = answer;
    setText($("report-summary"), summary(answer));
    setText(
      $("report-span"),
      filled(gettext("%(from)s to %(to)s. Days in %(zone)s."), {
        from: bothTimes(terms.from_us / 1000),
        to: bothTimes(terms.to_us / 1000),
        zone: terms.zone,
      }),
    );
    const left = omissions(answer);
    $("report-omissions").hidden = !left;
    setText($("report-omissions"), left);
    setText($("report-way"), rows.length > 0 ? gettext("Choose a row to see the way of its object on the map.") : "");
    $("report-table").hidden = rows.length === 0;
    $("report-csv").hidden = rows.length === 0;
    $("report-csv").href = this.address(stream, { ...parameters, format: "csv" });
    this.table.show(report, rows);
    this.#chart();
  }

  #chart() {
    const days = this.answer?.days ?? [];
    const known = days.some(({ objects }) => objects > 0);
    $("report-chart").hidden = !known;
    if (known) $("report-plot").replaceChildren(daysChart(days, $("report-measure").value));
  }

  /** Draw where the object of a row has been. Bring a visit or a stop into view, of other rows the area. */
  async #showWay(row) {
    const turn = ++this.asked;
    const parameters = wayOf(this.parameters, row);
    setText($("report-way"), gettext("Reading the way…"));
    try {
      const { rows, total, truncated } = await this.ask(this.stream, parameters);
      if (turn !== this.asked) return;
      this.onDraw();
      const drawn = drawnRows(rows);
      this.layer.show(drawn);
      this.drawn = true;
      const found = filled(
        ngettext("%(name)s: %(count)s fix on the map.", "%(name)s: %(count)s fixes on the map.", total),
        { name: this.#nameOf(row.key), count: count(total) },
      );
      const cut = truncated ? filled(gettext("The map shows the first %(count)s."), { count: count(rows.length) }) : "";
      setText($("report-way"), [found, cut].filter(Boolean).join(" "));
      const [west, south, east, north] = this.answer.terms.bounds ?? [];
      const around = row.begin || !(east - west < 360) ? boxAround(drawn) : { lo: [west, south], hi: [east, north] };
      if (around) this.onBox(around);
    } catch (error) {
      if (turn === this.asked) setText($("report-way"), error.message);
    }
  }

  #read() {
    const { elements } = this.form;
    const place = this.#place();
    const term = (/** @type {any[]} */ [name, factor]) =>
      elements[name].value === "" ? null : (this.measures[name]?.own ?? factor * elements[name].valueAsNumber);
    return {
      stream: elements.stream.value,
      report: elements.report.value,
      where: elements.where.value,
      place,
      area: this.#area(place),
      span: elements.span.value,
      from: elements.from.value,
      to: elements.to.value,
      zone: elements.zone.value,
      zoneName: ZONE,
      terms: Object.fromEntries(Object.entries(TERMS).map(([name, field]) => [name, term(field)])),
    };
  }

  /** Return where the outline of the area is, as `SketchAreas` has places; null if it has none. */
  #place() {
    const { where, query } = this.form.elements;
    return where.value === "feature" ? null : this.areas.place(where.value, Number(query.value));
  }

  /** Return the parameters of the area; null if none is chosen yet. */
  #area(place) {
    const { where, query } = this.form.elements;
    if (where.value === "feature") return this.feature && { layer: this.feature.layer, feature: this.feature.key };
    if (where.value === "query") return query.value ? { query: query.value } : null;
    return place && areaOf(place);
  }

  #nameOf(key) {
    const slot = this.store.objects.slot(this.stream, key);
    if (slot !== undefined) this.names.set(key, title(key, this.store.objects.properties(slot)));
    return this.names.get(key) ?? key;
  }

  /** Return a stream's own time, that of its newest element: the last hour of a replay is an hour of the replay. */
  #nowOf(stream) {
    const ms = this.store.streamTimeMs(stream, this.now());
    return Number.isFinite(ms) ? ms : this.now() + this.store.clockOffsetMs;
  }

  /** Show the search for elements ("rows") or the report. */
  #show(kind) {
    for (const input of document.querySelectorAll("[name=history-kind]")) input.checked = input.value === kind;
    $("history-elements").hidden = kind === "report";
    $("history-report").hidden = kind !== "report";
    if (kind !== "report") this.areas.stop();
  }

  /** Take a selected feature as the area, if the form asks for one. */
  #take(feature) {
    if (!feature || this.form.elements.where.value !== "feature") return;
    this.feature = feature;
    this.#changed();
    this.#error("where", "");
  }

  #forget() {
    Object.assign(this, { answer: null });
    this.areas.show(null);
    this.#clearWay();
    $("report-results").hidden = true;
    this.details.open = true;
  }

  /** Take the way from the map; what the search has drawn stays. */
  #clearWay() {
    if (this.drawn) this.layer.clear();
    this.drawn = false;
  }

  #busy(busy) {
    $("report-run").disabled = busy;
    setText($("report-run"), busy ? gettext("Reading…") : gettext("Make report"));
  }

  /** Offer the streams that are stored and the queries that have an area, and keep what was chosen. */
  #offer() {
    const { elements } = this.form;
    const streams = [...this.store.streams.values()]
      .filter(({ stored }) => stored)
      .map(({ name, title: text }) => [name, text ?? name]);
    $("report-none").hidden = streams.length > 0;
    offer(
      elements.stream,
      [["", streams]],
      streams.some(([name]) => name === elements.stream.value) ? elements.stream.value : (streams[0]?.[0] ?? ""),
    );
    const queries = this.store
      .listed()
      .filter(({ query }) => this.areas.place("query", query))
      .map(({ query, name }) => [String(query), name]);
    offer(elements.query, [["", queries]]);
    this.#spanText();
  }

  #changed(name) {
    const { elements } = this.form;
    const where = elements.where.value;
    if (name === "zone") this.#otherZone();
    this.zone = elements.zone.value;
    $("report-area").hidden = !DRAWN[where];
    $("report-query").hidden = where !== "query";
    $("report-feature").hidden = where !== "feature";
    $("report-times").hidden = elements.span.value !== "custom";
    $("report-zone").hidden = isUtc(this.now());
    if (name === "where") {
      if (DRAWN[where]) this.areas.draw(DRAWN[where]);
      else this.areas.stop();
      this.#take(this.store.selectedFeature);
    }
    if (DRAWN[where]) setText($("report-drawn"), placeText(this.areas.place(where)));
    const { feature } = this;
    const layer = this.store.layers.get(feature?.layer)?.title ?? feature?.layer;
    const taken = () =>
      filled(gettext("%(feature)s, of %(layer)s. Select another one on the map to take it."), {
        feature: title(feature.key, feature.properties ?? {}),
        layer,
      });
    setText($("report-feature"), feature ? taken() : gettext("Select a polygon of a layer on the map."));
    this.#spanText();
  }

  #spanText() {
    const { span, from, to, zone, stream } = this.form.elements;
    const ends = spanOf(
      { span: span.value, from: from.value, to: to.value, zone: zone.value },
      this.#nowOf(stream.value),
    );
    setText($("report-span-text"), endsText(ends?.from && bothTimes(ends.from), ends?.to && bothTimes(ends.to)));
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

  #errors(errors) {
    for (const field of FIELDS) this.#error(field, errors[field] ?? "");
    const [first] = Object.keys(errors);
    if (!first) return;
    this.details.open = true;
    if (first === "terms") $("report-terms").open = true;
    this.form.elements[first === "terms" ? "gap" : first]?.focus();
  }

  #error(field, text) {
    setText($(`report-error-${field}`), text);
    $(`report-error-${field}`).hidden = !text;
  }
}

/** Say from when to when; either end may be missing. */
function endsText(from, to) {
  if (from && to) return filled(gettext("From %(from)s to %(to)s"), { from, to });
  if (from) return filled(gettext("From %(from)s"), { from });
  return to ? filled(gettext("to %(to)s"), { to }) : "";
}

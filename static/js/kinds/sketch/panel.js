// The panel Statistics: the form for questions to sketches, the question as text, its answers, and what is done with them.

import { $, coalesced, h, offer, setText } from "../../dom.js";
import { label } from "../../format.js";
import { formTime } from "../../history/history.js";
import { filled, gettext } from "../../i18n.js";
import { pageEvents } from "../../page-events.js";
import { basisText } from "./bounds.js";
import { compared } from "./comparison.js";
import { placeText } from "./places.js";
import { everyFor, faultsOf, LAST, planFrom, rangeFrom, SHOWS, timeFrom } from "./plans.js";
import { Results } from "./results.js";

const FIELDS = ["stream", "feature", "where", "span", "daily", "against", "form", "name"];
const HOUR_US = 3.6e9;
const OFFER_MS = 500; // the status of a thousand queries may come in a second
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

export class SketchPanel {
  store;
  asker;
  areas;
  now;
  ask;
  onOpen;
  onSaved;
  documents;
  shownPlan;
  zone = "utc";

  /**
   * @param {Record<string, any>} parts `store`; `asker`, a SketchAsker; `areas`, a SketchAreas; `isDark()`; `now()`; `ask(message)`, a promise of
   *   the reply; `onOpen()`; `onSaved(reply)`
   */
  constructor(parts) {
    Object.assign(this, parts);
    this.form = $("sketch-form");
    this.results = new Results($("sketch-answers"), parts.isDark);
    this.query = null; // the saved query that is edited
    this.picked = new Set(); // fields that the user changed
    pageEvents.on("theme units", () => this.#redraw());
    const { elements } = this.form;
    const spans = Object.entries(LAST).map(([name, [, words]]) => new Option(words, name));
    elements.span.replaceChildren(
      new Option(gettext("All times"), "all"),
      ...spans,
      new Option(gettext("From … to …"), "custom"),
    );
    const shows = SHOWS.map(([name, words]) =>
      h(
        "li",
        {},
        h(
          "label",
          { class: "choice" },
          h("input", { type: "checkbox", name: "shows", value: name, checked: name !== "forecast" }),
          h("span", {}, words),
        ),
      ),
    );
    $("sketch-shows").replaceChildren(...shows);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.run();
    });
    this.form.addEventListener("change", ({ target }) => this.#changed(target.name));
    $("sketch-draw").addEventListener("click", () =>
      this.areas.draw(elements.where.value === "polygon" ? "polygon" : "here", true),
    );
    $("sketch-other-draw").addEventListener("click", () => this.areas.draw("other", true));
    $("sketch-clear").addEventListener("click", () => this.clear());
    $("sketch-text").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      this.#ask({ text: event.target.value.trim() });
    });
    $("sketch-compare").addEventListener("click", () => this.#compare());
    $("sketch-save").addEventListener("click", () => this.#name(true));
    $("sketch-name-cancel").addEventListener("click", () => this.#name(false));
    $("sketch-name-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.store.on(
      "streams queries",
      coalesced(() => this.#offer(), OFFER_MS),
    );
    this.#offer();
    this.#changed();
  }

  /** Show the answers of a saved query, and change its plan. */
  edit(query) {
    this.onOpen();
    this.query = query;
    this.#ask({ plan: query.plan });
  }

  /** Ask what the form says. */
  async run() {
    const faults = faultsOf(this.#read());
    this.#errors(faults);
    if (Object.keys(faults).length > 0) return;
    this.areas.stop();
    await this.#suitAll();
    this.#ask({ plan: planFrom(this.#read()) });
  }

  /** For all times, choose steps that suit the times that the sketch has, unless the user chose some. */
  #suitAll() {
    const { stream, span, every } = this.form.elements;
    if (span.value !== "all" || this.picked.has("every")) return null;
    this.#busy(true);
    const plan = { stream: stream.value, kind: "sketch", ask: [{ question: "count" }], once: true };
    return new Promise((/** @type {(value?: any) => void} */ resolve) => {
      this.asker.ask(
        { plan },
        {
          answers: ([{ basis }]) => {
            if (basis.first_us !== null) every.value = everyFor((basis.last_us - basis.first_us) / 1000);
            resolve();
          },
          error: resolve, // the question itself will say what is wrong
        },
      );
    });
  }

  /** Forget the answers, and end the question. */
  clear() {
    this.question?.end();
    this.areas.stop();
    this.areas.show(null);
    Object.assign(this, { question: null, plan: null, documents: null, query: null });
    this.results.forget();
    $("sketch-results").hidden = true;
    $("sketch-text").value = "";
    $("sketch-question").open = true;
    this.#errors({});
  }

  /** Show the answers in other units or colours. */
  #redraw() {
    this.results.forget();
    if (this.documents) this.results.show(this.documents, this.plan);
  }

  /** Show where the areas are that were drawn. */
  showAreas() {
    this.#changed();
    for (const field of ["where", "against"]) this.#error(field, "");
  }

  #ask(asked) {
    this.question?.end();
    this.#errors({});
    this.#busy(true);
    const field = $("sketch-text");
    let shown = field.value;
    this.question = this.asker.ask(asked, {
      plan: (plan, text, note) => {
        this.plan = plan;
        setText($("sketch-note"), note ?? "");
        $("sketch-note").hidden = !note;
        if (field.value === shown) field.value = shown = text; // not over what was typed meanwhile
        this.areas.show(plan);
      },
      answers: (documents, plan) => this.#show(documents, plan),
      error: (message) => {
        this.#busy(false);
        this.#errors({ form: message });
      },
    });
  }

  #show(documents, plan) {
    const first = this.documents === null || this.documents === undefined || this.shownPlan !== plan;
    Object.assign(this, { documents, plan, shownPlan: plan });
    this.#busy(false);
    this.#error("form", "");
    $("sketch-results").hidden = false;
    this.results.show(documents, plan);
    const basis = documents.find((document) => document?.basis);
    setText($("sketch-basis"), basis ? basisText(basis.basis, basis.confidence) : "");
    setText($("sketch-save"), this.query ? filled(gettext("Save “%(name)s”"), this.query) : gettext("Save as query"));
    if (!first) return;
    $("sketch-exact").replaceChildren();
    $("sketch-question").open = false;
    $("pane-statistics").scrollTop = 0;
  }

  #busy(busy) {
    $("sketch-run").disabled = busy;
    setText($("sketch-run"), busy ? gettext("Asking…") : gettext("Ask"));
  }

  #read() {
    const { elements } = this.form;
    const sketch = this.#sketch();
    const zone = elements.zone.value;
    const fields = {
      stream: elements.stream.value,
      feature: elements.feature.value,
      features: sketch?.features ?? [],
      comoments: sketch?.comoments ?? [],
      binS: (sketch?.time_bin_us ?? HOUR_US) / 1e6,
      shows: [...this.form.querySelectorAll("[name=shows]:checked")].map(({ value }) => value),
      every: elements.every.value,
      where: elements.where.value,
      place: this.areas.place(elements.where.value, Number(elements.query.value)),
      span: elements.span.value,
      from: elements.from.value,
      to: elements.to.value,
      zone,
      zoneName: ZONE,
      dailyFrom: elements.dailyFrom.value,
      dailyTo: elements.dailyTo.value,
      against: elements.against.value,
    };
    return { ...fields, other: this.#other(fields) };
  }

  /** Return with what the selection is contrasted, as a plan has it; null for nothing. */
  #other(fields) {
    const { otherFrom, otherTo } = this.form.elements;
    if (fields.against === "place") return this.areas.other();
    const range = fields.against === "time" ? rangeFrom(otherFrom.value, otherTo.value, fields.zone) : null;
    const { ranges: _ranges, last_s: _last, ...hours } = timeFrom(fields) ?? {};
    return range && { time: { ...hours, ranges: [range] } };
  }

  #sketch() {
    return this.store.streams.get(this.form.elements.stream.value)?.sketch ?? null;
  }

  /** Offer the streams that are sketched and the queries that have an area, and keep what was chosen. */
  #offer() {
    const { elements } = this.form;
    const streams = [...this.store.streams.values()]
      .filter(({ sketch }) => sketch)
      .map(({ name, title }) => [name, title ?? name]);
    $("sketch-none").hidden = streams.length > 0;
    offer(
      elements.stream,
      [["", streams]],
      streams.some(([name]) => name === elements.stream.value) ? elements.stream.value : (streams[0]?.[0] ?? ""),
    );
    const areas = this.store
      .listed()
      .filter(({ query }) => this.areas.place("query", query))
      .map(({ query, name }) => [String(query), name]);
    offer(elements.query, [["", areas]]);
    this.#features();
  }

  #features() {
    const sketch = this.#sketch();
    const names = (sketch?.features ?? []).map((name) => [name, label(name)]);
    const { feature } = this.form.elements;
    offer(
      feature,
      [["", names]],
      names.some(([name]) => name === feature.value) ? feature.value : (names[0]?.[0] ?? ""),
    );
    const correlation = this.form.querySelector("[name=shows][value=correlation]");
    correlation.disabled = (sketch?.comoments ?? []).length < 2;
    correlation.title = correlation.disabled ? gettext("The sketch of this stream keeps no co-moments.") : "";
  }

  #changed(name) {
    const { elements } = this.form;
    if (name) this.picked.add(name);
    if (name === "stream") this.#features();
    if (name === "zone") this.#otherZone();
    this.zone = elements.zone.value;
    const where = elements.where.value;
    const drawn = { rectangle: "here", polygon: "polygon" }[where];
    $("sketch-area").hidden = !drawn;
    $("sketch-query").hidden = where !== "query";
    $("sketch-times").hidden = elements.span.value !== "custom";
    $("sketch-zone").hidden = ZONE === "UTC";
    $("sketch-other-area").hidden = elements.against.value !== "place";
    $("sketch-other-times").hidden = elements.against.value !== "time";
    if (name === "where") {
      if (drawn) this.areas.draw(drawn);
      else this.areas.stop();
    }
    if (name === "against" && elements.against.value === "place") this.areas.draw("other");
    if (name === "span" || name === "from" || name === "to") this.#suit();
    setText($("sketch-drawn"), placeText(this.areas.place(where)));
    setText($("sketch-other-drawn"), placeText(this.areas.other()));
  }

  /** Choose steps that suit the length of the times. */
  #suit() {
    const { span, from, to, every, zone } = this.form.elements;
    if (this.picked.has("every")) return;
    const range = span.value === "custom" ? rangeFrom(from.value, to.value, zone.value) : null;
    if (LAST[span.value]) every.value = everyFor(1000 * LAST[span.value][0]);
    else if (range?.from && range.to) every.value = everyFor(Date.parse(range.to) - Date.parse(range.from));
  }

  /** Show the same instants in the other zone. */
  #otherZone() {
    const { elements } = this.form;
    for (const field of ["from", "to", "otherFrom", "otherTo"].map((one) => elements[one])) {
      if (field.value)
        field.value = formTime(
          new Date(this.zone === "utc" ? `${field.value}Z` : field.value).getTime(),
          elements.zone.value,
        );
    }
  }

  async #compare() {
    const { plan } = this;
    const feature = plan.ask.find(({ features }) => features?.length > 0)?.features[0];
    const place = $("sketch-exact");
    place.replaceChildren(h("p", { class: "hint" }, gettext("Comparing…")));
    const stream = this.store.streams.get(plan.stream);
    const ms = this.store.streamTimeMs(plan.stream, this.now());
    const nowMs = Number.isFinite(ms) ? ms : this.now() + this.store.clockOffsetMs;
    const parts = { asker: this.asker, ask: this.ask, stored: Boolean(stream?.stored), nowMs };
    const made = feature
      ? await compared(plan, feature, parts)
      : [h("p", { class: "notice" }, gettext("Only figures of a feature can be compared."))];
    if (plan === this.plan) place.replaceChildren(...made);
  }

  /** Open or close the form for the name of the query; a query that is edited has one. */
  #name(open) {
    if (open && this.query) return void this.#save();
    $("sketch-name-form").hidden = !open;
    const field = $("sketch-name");
    if (open && !field.value)
      field.value = filled(gettext("%(stream)s: statistics"), {
        stream: this.store.streams.get(this.plan.stream)?.title ?? this.plan.stream,
      });
    (open ? field : $("sketch-save")).focus();
    if (open) field.select();
  }

  async #save() {
    const { elements } = $("sketch-name-form");
    const plan = { ...this.plan, once: false };
    const message = this.query
      ? { type: "query.edit", query: this.query.query, plan }
      : { type: "query.register", name: elements.name.value.trim(), plan, shared: elements.shared.checked };
    try {
      const reply = await this.ask(message);
      this.#error("name", "");
      $("sketch-name-form").hidden = true;
      $("sketch-name-form").reset();
      this.onSaved(reply);
    } catch (error) {
      this.#error($("sketch-name-form").hidden ? "form" : "name", error.message);
    }
  }

  #errors(errors) {
    for (const field of FIELDS) this.#error(field, errors[field] ?? "");
    const [first] = Object.keys(errors);
    if (!first || first === "form") return;
    $("sketch-question").open = true;
    this.form.elements[first === "daily" ? "dailyFrom" : first]?.focus();
  }

  #error(field, text) {
    setText($(`sketch-error-${field}`), text);
    $(`sketch-error-${field}`).hidden = !text;
  }
}

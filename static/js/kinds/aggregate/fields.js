// The part of the query form for aggregates: the function, what it is computed of, the groups, and the thresholds.

import { $, h } from "../../dom.js";
import { gettext, pgettext } from "../../i18n.js";
import { MeasureField } from "../../measure-field.js";
import { pageEvents } from "../../page-events.js";
import { measureOf } from "../../quantities.js";

const FUNCTIONS = [
  ["", gettext("objects")],
  ["count", gettext("number of objects")],
  ["min", gettext("smallest value")],
  ["max", gettext("largest value")],
  ["sum", gettext("sum of values")],
  ["avg", gettext("average value")],
];
const MOST_THRESHOLDS = 8;
const SAMPLE = 100;

export class AggregateFields {
  store;
  form;
  dimensions;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `dimensions()`, their names */
  constructor({ store, form, dimensions }) {
    Object.assign(this, { store, form, dimensions });
    form.elements.function.replaceChildren(...FUNCTIONS.map(([name, words]) => new Option(words, name)));
    this.rows = new Map(); // element of a threshold -> {side, limit, seconds}
    form.addEventListener("change", () => this.#arrange());
    pageEvents.on("units", () => [...this.rows.values()].forEach(({ limit }) => limit.renew()));
    $("threshold-add").addEventListener("click", () => {
      this.#add({});
      this.#told();
    });
  }

  first = { aggregate: "function", thresholds: "function" };

  /** Show the aggregate of a plan; without one, the fields say that the query shows the objects themselves. */
  start({ aggregate }) {
    const { elements } = this.form;
    elements.function.value = aggregate?.function ?? "";
    elements.of.replaceChildren(
      new Option(gettext("property\u2026"), ""),
      ...this.dimensions().map((name) => new Option(name, name)),
    );
    elements.of.value = aggregate?.dimension ?? "";
    elements.property.value = aggregate?.property ?? "";
    elements.groupBy.value = aggregate?.group_by ?? "";
    this.rows.clear();
    $("threshold-list").replaceChildren();
    for (const threshold of aggregate?.thresholds ?? []) this.#add(threshold);
    this.#arrange();
  }

  show(visible) {
    $("aggregate-fields").hidden = !visible;
  }

  /** Return the `aggregate` that the fields describe; null if the query shows the objects themselves. */
  read() {
    return { aggregate: this.#read() };
  }

  #read() {
    const { elements } = this.form;
    const { value: name } = elements.function;
    if (!name) return null;
    const of = elements.of.value ? { dimension: elements.of.value } : { property: elements.property.value.trim() };
    const groups = elements.groupBy.value.trim();
    const thresholds = this.#thresholds().map(({ side, limit, seconds }) => ({
      [side]: limit,
      ...(seconds > 0 && { for_s: seconds }),
    }));
    return {
      function: name,
      ...(name !== "count" && of),
      ...(groups && { group_by: groups }),
      ...(thresholds.length > 0 && { thresholds }),
    };
  }

  /** What is missing, by field. */
  errors() {
    const aggregate = this.#read();
    const errors = /** @type {Record<string, string>} */ ({});
    if (aggregate && aggregate.function !== "count" && !aggregate.dimension && !aggregate.property)
      errors.aggregate = gettext("Choose a property.");
    if (aggregate && this.#thresholds().some(({ limit }) => !Number.isFinite(limit)))
      errors.thresholds = gettext("Type a number for each threshold, or remove it.");
    return errors;
  }

  #thresholds() {
    return [...this.rows.values()].map(({ side, limit, seconds }) => ({
      side: side.value,
      limit: limit.own,
      seconds: seconds.valueAsNumber,
    }));
  }

  #add(/** @type {Record<string, any>} */ { above, below, for_s: seconds }) {
    const side = h(
      "select",
      { "aria-label": gettext("Above or below") },
      new Option(gettext("above"), "above"),
      new Option(gettext("below"), "below"),
    );
    side.value = below === undefined || below === null ? "above" : "below";
    const about = { type: "number", step: "any", "aria-describedby": "error-thresholds" };
    const input = h("input", { ...about, "aria-label": gettext("Limit") });
    const time = h("input", {
      type: "number",
      min: "0",
      step: "any",
      "aria-label": gettext("Duration in seconds"),
      placeholder: "0",
      value: seconds || "",
    });
    const remove = h(
      "button",
      { type: "button", class: "quiet icon", "aria-label": gettext("Remove the threshold") },
      "\u00d7",
    );
    const row = h(
      "li",
      {},
      side,
      h("span", {}, input),
      h("span", { class: "hint" }, pgettext("duration", "for")),
      time,
      h("span", { class: "hint" }, "s"),
      remove,
    );
    const limit = new MeasureField(input, this.#measure());
    limit.show(above ?? below);
    this.rows.set(row, { side, limit, seconds: time });
    remove.addEventListener("click", () => {
      row.remove();
      this.rows.delete(row);
      this.#told();
    });
    $("threshold-list").append(row);
  }

  /** What the figure is measured in; null for a number of objects, and for a dimension. */
  #measure() {
    const { function: name, of, property } = this.form.elements;
    return name.value === "count" || of.value ? null : measureOf(property.value.trim());
  }

  /** Update the form's plan after a threshold was added or removed. */
  #told() {
    this.#arrange();
    this.form.elements.function.dispatchEvent(new Event("input", { bubbles: true }));
  }

  #arrange() {
    const { elements } = this.form;
    const { value: name } = elements.function;
    $("aggregate-of").hidden = !name || name === "count";
    $("aggregate-more").hidden = !name;
    elements.property.hidden = Boolean(elements.of.value);
    $("threshold-add").disabled = this.rows.size >= MOST_THRESHOLDS;
    for (const { limit } of this.rows.values()) limit.measureIn(this.#measure());
    const stream = elements.stream.value;
    if (name && this.sampled !== stream) this.#names(stream);
  }

  /** Propose the properties that objects of the stream have. */
  #names(stream) {
    this.sampled = stream;
    const slots = [...(this.store.objects.byStream.get(stream)?.values() ?? [])].slice(0, SAMPLE);
    const names = new Set(slots.flatMap((slot) => Object.keys(this.store.objects.properties(slot))));
    $("property-names").replaceChildren(...[...names].sort().map((name) => new Option(name, name)));
  }
}

// A field of a form for a number that has a unit. It shows its unit, first the one that the page shows; the form reads the number
// in the unit of the plan. What nobody changes is read as it was given, however it was rounded for the eye.

import { h } from "./dom.js";
import { gettext } from "./i18n.js";
import { pageEvents } from "./page-events.js";
import { fromOwn, LENGTH, shownUnit, toOwn, writableIn } from "./quantities.js";

export class MeasureField {
  least;
  most;
  kept;
  written;

  /**
   * @param {HTMLInputElement} input of type number; its value, `min`, `max` and a number as its `placeholder` are in the unit of the measure
   * @param {import("./quantities.js").Measure | null} measure null for a number without a unit
   */
  constructor(input, measure = LENGTH) {
    this.input = input;
    [this.least, this.most] = [input.min, input.max].map((limit) => (limit === "" ? NaN : Number(limit)));
    this.usual = Number.parseFloat(input.placeholder);
    for (const limit of ["min", "max"]) input.removeAttribute(limit);
    const name = input.name ? `${input.name}Unit` : null;
    this.choice = h("select", { class: "unit", name, "aria-label": gettext("Unit") });
    this.choice.addEventListener("change", () => this.#write(this.own, this.choice.value));
    const place = h("span", { class: "measure" });
    input.replaceWith(place);
    place.append(input, this.choice);
    Object.assign(this, { kept: input.valueAsNumber, written: input.value });
    this.measureIn(measure);
  }

  /** Measure in something else. What is typed stays. */
  measureIn(/** @type {import("./quantities.js").Measure | null} */ measure) {
    if (JSON.stringify(measure) === JSON.stringify(this.measure)) return;
    const unchanged = this.input.value === this.written && Number.isFinite(this.kept) ? this.kept : null;
    this.measure = measure;
    this.choice.hidden = !measure;
    if (measure) this.choice.replaceChildren(...writableIn(measure).map((unit) => new Option(unit, unit)));
    if (unchanged !== null || !this.input.value) this.show(unchanged);
    else this.#choose(measure && shownUnit(measure));
  }

  /** Show a number that is in the unit of the measure, or none; `about` says how large one would be. */
  show(/** @type {number | null | undefined | ""} */ own, about = this.usual) {
    const number = own === "" ? NaN : (own ?? NaN);
    this.about = about || 0;
    this.#write(number, this.measure && shownUnit(this.measure, Number.isFinite(number) ? number : this.about));
  }

  /** Show the number as the page shows such numbers now. */
  renew() {
    const { own } = this;
    if (this.input.validity.badInput) return;
    this.show(own, this.about);
  }

  /** The number in the unit of the measure; NaN without one. */
  get own() {
    if (this.input.value === this.written) return this.kept;
    const number = this.input.valueAsNumber;
    return this.measure ? toOwn(this.measure, number, this.unit) : number;
  }

  /** Whether there is a number within the limits, or none where none is needed. */
  get valid() {
    const { own } = this;
    if (Number.isNaN(own)) return !this.input.required && !this.input.validity.badInput;
    return !(own < this.least || own > this.most);
  }

  #write(own, unit) {
    const text = (number) => String(this.measure ? fromOwn(this.measure, number, unit) : number);
    this.input.value = Number.isFinite(own) ? text(own) : "";
    Object.assign(this, { kept: own, written: this.input.value });
    if (!Number.isNaN(this.usual)) this.input.placeholder = text(this.usual);
    this.#choose(unit);
  }

  #choose(unit) {
    this.unit = unit;
    this.choice.value = unit ?? "";
  }
}

/**
 * Return the fields of a form for numbers with units, by their names. They follow when other units are chosen.
 *
 * @param {any} elements of the form
 * @param {Record<string, import("./quantities.js").Measure | null>} measures by name
 * @returns {Record<string, MeasureField>}
 */
export function measureFields(elements, measures) {
  const fields = Object.fromEntries(
    Object.entries(measures).map(([name, measure]) => [name, new MeasureField(elements[name], measure)]),
  );
  pageEvents.on("units", () => Object.values(fields).forEach((field) => field.renew()));
  return fields;
}

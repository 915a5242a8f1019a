// The fields of the query form for the range around a focus: a circle, a rectangle, or a polygon that the plan has.

import { $ } from "../../dom.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";
import { units } from "../../units.js";
import { FocusFields } from "../focus-fields.js";

export class ShapeFields {
  elements;

  /** @param {Record<string, any>} parts `form`, the query form's element; `part(class)`, another part of it */
  constructor({ form, part }) {
    this.elements = form.elements;
    this.focus = part(FocusFields);
    this.measures = measureFields(form.elements, { radius: LENGTH, across: LENGTH, along: LENGTH });
  }

  /** Show the range of a plan; without one, a standard circle. */
  start(plan) {
    const around = plan.around ?? {};
    this.polygon = around.polygon ?? null;
    this.elements.shape.value = around.polygon ? "polygon" : around.half_widths ? "half_widths" : "radius";
    const widths = around.half_widths ?? [];
    this.further = widths.slice(2);
    const { radius, across, along } = this.measures;
    const { radiusM } = units();
    radius.show(around.radius ?? radiusM);
    across.show(around.half_widths ? widths[0] : radiusM, radiusM);
    along.show(around.half_widths ? widths[1] : radiusM, radiusM);
  }

  setRange({ around: { radius, half_widths: widths } }) {
    if (radius) this.measures.radius.show(radius);
    if (!widths) return;
    this.measures.across.show(widths[0], widths[1]);
    this.measures.along.show(widths[1], widths[0]);
  }

  /** Return the focus with the range around it. */
  read() {
    return { around: { ...this.focus.read().around, ...this.#shape() } };
  }

  /** @returns {Record<string, string>} */
  errors() {
    const { radius, half_widths: widths } = this.#shape();
    const none = radius === null || widths?.every((width) => width === null);
    return none ? { shape: gettext("Type a length above 0.") } : {};
  }

  show(visible) {
    const { shape } = this.elements;
    $("shape-fields").hidden = !visible;
    $("radius-field").hidden = shape.value !== "radius";
    $("widths-field").hidden = shape.value !== "half_widths";
    $("polygon-field").hidden = shape.value !== "polygon";
    [...shape.options].find(({ value }) => value === "polygon").hidden = !this.polygon;
  }

  /** @returns {Record<string, any>} */
  #shape() {
    const { value } = this.elements.shape;
    if (value === "polygon") return { polygon: this.polygon };
    const { radius, across, along } = this.measures;
    if (value === "radius") return { radius: positive(radius) };
    return { half_widths: [positive(across), positive(along), ...this.further] };
  }
}

function positive({ own }) {
  return own > 0 ? own : null;
}

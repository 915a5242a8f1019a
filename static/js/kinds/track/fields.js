// The fields of noise in the query form: accuracy, fastest speed and crossings between reports. With one of them, a range is about tracks.

import { $ } from "../../dom.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { AggregateFields } from "../aggregate/fields.js";
import { GAP_S } from "./noise.js";
import { LENGTH, SPEED } from "../../quantities.js";

export class NoiseFields {
  first = { noise: "accuracyM" };

  /** @param {Record<string, any>} parts `form`, the query form's element; `part(class)`, another part of it */
  constructor({ form, part }) {
    this.elements = form.elements;
    this.aggregate = part(AggregateFields);
    this.measures = measureFields(form.elements, { accuracyM: LENGTH, fastest: SPEED });
    this.gapS = GAP_S;
  }

  /** Show the noise of a plan; a plan about no tracks has none. */
  start(plan) {
    const { accuracyBy, crossings } = this.elements;
    const { accuracyM, fastest } = this.measures;
    const tracked = plan.kind === "track";
    const { accuracy = 0, fastest_m_s: most, gap_s: gapS = GAP_S } = tracked ? plan : { gap_s: 0 };
    const byProperty = typeof accuracy === "object" && accuracy !== null;
    accuracyM.show((byProperty ? accuracy.else_m : accuracy) || null);
    accuracyBy.value = byProperty ? accuracy.property : "";
    fastest.show(most);
    crossings.checked = gapS > 0;
    this.gapS = gapS > 0 ? gapS : GAP_S;
    $("noise-fields").open = tracked;
  }

  /** Show the fields unless an aggregate is chosen; as soon as they say something, none can be. */
  show(visible) {
    $("noise-fields").hidden = !visible || Boolean(this.aggregate.read().aggregate);
    if (this.#read()) this.aggregate.show(false);
  }

  /** Return `noise`, `{accuracy, fastest_m_s, gap_s}`; null if nothing is said of it. */
  read() {
    return { noise: this.#read() };
  }

  #read() {
    if ($("noise-fields").hidden) return null;
    const { accuracyBy, crossings } = this.elements;
    const { accuracyM, fastest } = this.measures;
    const [metres, property, most] = [accuracyM.own || 0, accuracyBy.value.trim(), fastest.own || null];
    if (!metres && !property && !most && !crossings.checked) return null;
    const accuracy = property ? { property, else_m: metres } : metres;
    return { accuracy, ...(most ? { fastest_m_s: most } : {}), gap_s: crossings.checked ? this.gapS : 0 };
  }

  /** @returns {Record<string, string>} */
  errors() {
    const { accuracyM, fastest } = this.measures;
    const valid = !this.#read() || (accuracyM.valid && fastest.valid && !(fastest.own <= 0));
    return valid ? {} : { noise: gettext("The accuracy must be 0 or more, and the speed above 0.") };
  }
}

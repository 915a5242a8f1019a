// The fields of the query form for nearest neighbours: how many, and how far away at most.

import { $ } from "../../dom.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";
import { units } from "../../units.js";
import { STANDARD_K } from "../about.js";

export class NeighbourFields {
  /** @param {Record<string, any>} parts `form`, the query form's element */
  constructor({ form }) {
    this.k = form.elements.k;
    this.measures = measureFields(form.elements, { maxDistance: LENGTH });
  }

  start({ k, max_distance: farthest }) {
    this.k.value = k ?? STANDARD_K;
    this.measures.maxDistance.show(farthest, units().radiusM);
  }

  setRange({ max_distance: farthest }) {
    if (farthest) this.measures.maxDistance.show(farthest);
  }

  read() {
    const { own } = this.measures.maxDistance;
    return { k: this.k.valueAsNumber, max_distance: own > 0 ? own : null };
  }

  /** @returns {Record<string, string>} */
  errors() {
    return this.read().k >= 1 ? {} : { k: gettext("Type a number of 1 or more.") };
  }

  show(visible) {
    $("nearest-fields").hidden = !visible;
  }
}

// The fields of closest approaches in the query form: of which stream, how close, and in what time.

import { $, offer } from "../../dom.js";
import { length } from "../../format.js";
import { filled, gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";
import { PartnerFields } from "../partner-fields.js";

const STANDARD_M = 500;
const STANDARD_S = 600;
const FILTER_EXAMPLE = "speed_mps > 5";

export class ClosestFields {
  store;
  elements;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `part(class)`, another part of it */
  constructor({ store, form, part }) {
    Object.assign(this, { store, elements: form.elements });
    this.partners = part(PartnerFields);
    this.measures = measureFields(form.elements, { closeM: LENGTH });
  }

  /** Show what a plan says of closest approaches. */
  start({ kind, stream, join, mirrored, within_m: withinM = STANDARD_M, within_s: withinS = STANDARD_S }) {
    this.measures.closeM.show(withinM);
    this.elements.closeMin.value = withinS / 60;
    const closest = kind === "closest_approach";
    this.elements.closeMirrored.checked = closest && mirrored === true;
    this.offer((closest && join?.stream !== stream && join?.stream) || "");
  }

  /** Offer the streams that there are now; the first choice is the query's own. */
  offer(chosen = this.elements.closeStream.value) {
    const streams = [...this.store.streams.values()].filter(
      ({ enabled, name }) => enabled !== false || name === chosen,
    );
    offer(
      this.elements.closeStream,
      [["", [["", gettext("the same stream")], ...streams.map(({ name, title }) => [name, title ?? name])]]],
      chosen,
    );
  }

  /** Show the fields, or not. */
  show(visible) {
    $("close-fields").hidden = !visible;
    $("close-mirrored").hidden = !this.#ofOne();
    if (visible) this.partners.name(gettext("partners"), FILTER_EXAMPLE);
  }

  /** Return `close`, `{stream, where, mirrored, withinM, withinS}`, from the fields. */
  read() {
    const { stream, closeMin, closeStream, closeMirrored } = this.elements;
    const others = {
      stream: closeStream.value || stream.value,
      where: this.partners.where,
      mirrored: this.#ofOne() && closeMirrored.checked,
    };
    return { close: { ...others, withinM: this.measures.closeM.own, withinS: closeMin.valueAsNumber * 60 } };
  }

  /** Whether both objects of a pair are of one stream. */
  #ofOne() {
    const { stream, closeStream } = this.elements;
    return !closeStream.value || closeStream.value === stream.value;
  }

  /** @returns {Record<string, string>} */
  errors() {
    const { closeM } = this.measures;
    if (closeM.valid && this.elements.closeMin.validity.valid) return {};
    const words = gettext("The distance must be %(least)s to %(most)s, and minutes more than 0 and 60 at most.");
    return { closeM: filled(words, { least: length(closeM.least), most: length(closeM.most) }) };
  }
}

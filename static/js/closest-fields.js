// The fields of closest approaches in the query form: of which stream, how close, and in what time.

import { $, offer } from "./dom.js";
import { gettext } from "./i18n.js";

const STANDARD_M = 500;
const STANDARD_S = 600;
const FILTER_EXAMPLE = "speed_mps > 5";

export class ClosestFields {
  store;
  elements;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element */
  constructor({ store, form }) {
    Object.assign(this, { store, elements: form.elements });
  }

  /** Show what a plan says of closest approaches. */
  start({ kind, stream, join, mirrored, within_m: withinM = STANDARD_M, within_s: withinS = STANDARD_S }) {
    this.elements.closeM.value = withinM;
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
    if (!visible) return;
    $("partner-kind").textContent = gettext("partners");
    this.elements.partnerWhere.placeholder = FILTER_EXAMPLE;
  }

  /** Return `{stream, where, mirrored, withinM, withinS}` from the fields. */
  read() {
    const { stream, closeM, closeMin, closeStream, closeMirrored, partnerWhere } = this.elements;
    const others = {
      stream: closeStream.value || stream.value,
      where: partnerWhere.value.trim(),
      mirrored: this.#ofOne() && closeMirrored.checked,
    };
    return { ...others, withinM: closeM.valueAsNumber, withinS: closeMin.valueAsNumber * 60 };
  }

  /** Whether both objects of a pair are of one stream. */
  #ofOne() {
    const { stream, closeStream } = this.elements;
    return !closeStream.value || closeStream.value === stream.value;
  }

  /** Return what is wrong with the fields, by field. */
  errors() {
    const valid = this.elements.closeM.validity.valid && this.elements.closeMin.validity.valid;
    return valid ? {} : { closeM: gettext("Metres must be 1 to 100,000, and minutes more than 0 and 60 at most.") };
  }
}

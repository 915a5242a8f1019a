// The field of predicted entries in the query form: in what time.

import { $ } from "../../dom.js";
import { gettext } from "../../i18n.js";

const STANDARD_S = 600;

export class ApproachFields {
  /** @param {Record<string, any>} parts `form`, the query form's element */
  constructor({ form }) {
    this.input = form.elements.withinMin;
  }

  start({ within_s: withinS }) {
    this.input.value = (withinS ?? STANDARD_S) / 60;
  }

  show(visible) {
    $("approach-fields").hidden = !visible;
  }

  read() {
    return { within: this.input.valueAsNumber * 60 };
  }

  /** @returns {Record<string, string>} */
  errors() {
    return this.input.validity.valid ? {} : { withinMin: gettext("Minutes must be more than 0, and 60 at most.") };
  }
}

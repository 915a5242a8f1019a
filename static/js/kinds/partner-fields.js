// The field of the query form for the filter of partners.

import { $ } from "../dom.js";
import { FilterInput } from "../queries/filter-input.js";

export class PartnerFields {
  /** @param {Record<string, any>} parts `form`, the query form's element */
  constructor({ form }) {
    this.typed = new FilterInput(form.elements.partnerWhere);
  }

  /** The filter as a plan has it. */
  get where() {
    return this.typed.where;
  }

  start({ join }) {
    this.typed.show(join?.where ?? "");
  }

  /** Say what partners are, and show an example of a filter of them. */
  name(words, example) {
    $("partner-kind").textContent = words;
    this.typed.input.placeholder = example;
  }

  show(visible) {
    $("pair-fields").hidden = !visible;
  }

  read() {
    return {};
  }

  errors() {
    return {};
  }
}

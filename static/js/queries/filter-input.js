// The text of a filter in a form, with numbers in the units that the page shows. The form reads it as a plan has it.

import { FilterError } from "../display-filter/cql2.js";
import { planFilter, shownFilter } from "./filter-units.js";
import { pageEvents } from "../page-events.js";

export class FilterInput {
  /** @param {HTMLInputElement | HTMLTextAreaElement} input */
  constructor(input) {
    this.input = input;
    this.show("");
    pageEvents.on("units", () => this.show(this.where));
  }

  /** Show a filter of a plan. */
  show(where) {
    this.exact = new Map();
    this.given = where;
    this.input.value = shownFilter(where, this.exact);
    this.written = this.input.value; // a field of one line has no line breaks
  }

  /**
   * The filter as a plan has it.
   *
   * @throws {FilterError} if a unit stands where nothing can be measured in it
   */
  read() {
    return this.input.value === this.written ? this.given : planFilter(this.input.value.trim(), this.exact);
  }

  /** The filter as a plan has it, or as it is written if that has a wrong unit: then the server refuses it. */
  get where() {
    try {
      return this.read();
    } catch (error) {
      if (error instanceof FilterError) return this.input.value.trim();
      throw error;
    }
  }
}

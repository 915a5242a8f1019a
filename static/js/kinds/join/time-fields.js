// The part of the query form that says which reports of two streams a join pairs: the last ones, or those that are close in time.

import { $ } from "../../dom.js";
import { gettext } from "../../i18n.js";
import { timesAmong } from "./time-joins.js";

const LATE = ["latenessS", "idleS"];

export class TimeFields {
  kinds;
  elements;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `kinds`, all kinds of queries */
  constructor({ store, form, kinds }) {
    this.elements = form.elements;
    this.kinds = kinds.filter(({ times }) => times);
    const classes = this.kinds.flatMap(({ times }) => times.parts ?? []);
    this.parts = classes.map((Part) => new Part({ store, form }));
    this.numbers = [...this.kinds.flatMap(({ times }) => times.numbers), ...LATE];
    this.optional = this.kinds.flatMap(({ times }) => times.optional ?? []);
  }

  /** Show the times of a plan. */
  start(plan) {
    const times = timesAmong(this.kinds, plan);
    this.elements.when.value = times.when;
    for (const name of this.numbers) this.elements[name].value = times[name] ?? "";
    for (const part of this.parts) part.start(times);
  }

  /** Offer the layers that there are now. */
  offer() {
    for (const part of this.parts) part.offer();
  }

  /** Return the times, as `timesAmong` does, from the fields; what is optional is null if it is empty. @returns {Record<string, any>} */
  read() {
    const numbers = this.numbers.map((name) => {
      const { value, valueAsNumber } = this.elements[name];
      return [name, this.optional.includes(name) && value === "" ? null : valueAsNumber];
    });
    const others = this.parts.map((part) => part.read());
    return Object.assign({ when: this.elements.when.value }, Object.fromEntries(numbers), ...others);
  }

  /** What is missing, by field. @returns {Record<string, string>} */
  errors() {
    const times = this.read();
    const kind = this.kinds.find(({ when }) => when === times.when);
    if (!kind) return {};
    const late = times.latenessS >= 0 && times.idleS > 0;
    return { ...kind.times.errors(times), ...(late ? {} : { latenessS: gettext("Type two numbers of seconds.") }) };
  }

  /** Show the fields that belong to the choice; none unless the join is with a stream. */
  show(ofStream) {
    const chosen = this.elements.when.value;
    $("when-field").hidden = !ofStream;
    for (const { when } of this.kinds) $(`${when}-fields`).hidden = when !== chosen;
    for (const part of this.parts) part.show();
    $("late-fields").hidden = chosen === "now";
  }
}

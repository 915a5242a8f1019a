// The part of the query form that says when two objects must meet: now, in the same window of time, or one after the other.

import { $ } from "./dom.js";
import { TIMED } from "./kinds.js";

const STANDARD = { window: 60, before: 60, after: 60, lateness: 10 };

export class WhenFields {
  /** @param {HTMLFormElement} form the query form */
  constructor(form) {
    this.elements = form.elements;
  }

  /** Show the times of a plan. */
  start(plan) {
    const { when, windowS, beforeS, afterS, latenessS } = this.elements;
    when.value = TIMED.includes(plan?.kind) ? plan.kind : "join";
    windowS.value = plan?.window_s ?? STANDARD.window;
    beforeS.value = plan?.lower_s === undefined ? STANDARD.before : -plan.lower_s;
    afterS.value = plan?.upper_s ?? STANDARD.after;
    latenessS.value = plan?.lateness_s ?? STANDARD.lateness;
  }

  /** Show the fields that belong to the choice; only a stream has times. */
  show(ofStream) {
    const { when } = this.elements;
    if (!ofStream) when.value = "join";
    $("when-field").hidden = !ofStream;
    $("window-field").hidden = when.value !== "window_join";
    $("interval-field").hidden = when.value !== "interval_join";
    $("lateness-field").hidden = when.value === "join";
  }

  /** Return the keys of the plan that say when: `kind`, and those of its times. */
  read() {
    const { when, windowS, beforeS, afterS, latenessS } = this.elements;
    if (when.value === "window_join") return { kind: when.value, window_s: windowS.valueAsNumber, lateness_s: latenessS.valueAsNumber };
    if (when.value !== "interval_join") return { kind: "join" };
    return { kind: when.value, lower_s: -beforeS.valueAsNumber || 0, upper_s: afterS.valueAsNumber, lateness_s: latenessS.valueAsNumber };
  }

  /** What is missing, by field. */
  errors() {
    const { kind, window_s: window, lower_s: lower, upper_s: upper, lateness_s: lateness } = this.read();
    const errors = {};
    if (kind === "window_join" && !(window > 0)) errors.windowS = "Type a number of seconds above 0.";
    if (kind === "interval_join" && !(lower <= upper)) errors.beforeS = "Type two numbers of seconds; the interval must not end before it begins.";
    if (kind !== "join" && !(lateness >= 0)) errors.latenessS = "Type a number of seconds, at least 0.";
    return errors;
  }
}

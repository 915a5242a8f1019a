// The part of the query form that says which reports of two streams a join pairs: the last ones, or those that are close in time.

import { $, offer } from "../dom.js";
import { gettext } from "../i18n.js";
import { measureFields } from "../measure-field.js";
import { LENGTH } from "../quantities.js";
import { timesOf } from "./time-joins.js";

const NUMBERS = ["windowS", "slideS", "beforeS", "afterS", "latenessS", "idleS", "forMin", "gapMin"];

export class TimeFields {
  store;
  form;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element */
  constructor({ store, form }) {
    Object.assign(this, { store, form });
    this.measures = measureFields(form.elements, { awayM: LENGTH });
  }

  /** Show the times of a plan. */
  start(plan) {
    const times = timesOf(plan);
    this.form.elements.when.value = times.when;
    this.offer(times.away);
    for (const name of NUMBERS) this.form.elements[name].value = times[name] ?? "";
    this.measures.awayM.show(times.awayM);
  }

  /** Offer the layers that there are now as what both objects must be away from. */
  offer(chosen) {
    const layers = [...this.store.layers.values()]
      .filter(({ version }) => version !== null)
      .map(({ name, title }) => [name, title ?? name]);
    const { away } = this.form.elements;
    offer(away, [["", [["", gettext("nothing")], ...layers]]], chosen ?? away.value);
  }

  /** Return the times, as `timesOf` does, from the fields; `slideS` is null if it is empty. @returns {Record<string, any>} */
  read() {
    const { elements } = this.form;
    const numbers = Object.fromEntries(NUMBERS.map((name) => [name, elements[name].valueAsNumber]));
    return {
      when: elements.when.value,
      away: elements.away.value,
      ...numbers,
      awayM: this.measures.awayM.own,
      slideS: elements.slideS.value === "" ? null : numbers.slideS,
    };
  }

  /** What is missing, by field. */
  errors() {
    const { when, windowS, slideS, beforeS, afterS, latenessS, idleS, forMin, gapMin, away, awayM } = this.read();
    const errors = {};
    if (when === "window" && !(windowS > 0)) errors.windowS = gettext("Type how many seconds a window is long.");
    else if (when === "window" && slideS !== null && !(slideS > 0))
      errors.slideS = gettext("Type after how many seconds the next window begins, or nothing.");
    if (when === "interval" && ![beforeS, afterS].every(Number.isFinite))
      errors.beforeS = gettext("Type two numbers of seconds.");
    else if (when === "interval" && -beforeS > afterS)
      errors.beforeS = gettext("The interval must not end before it begins.");
    if (when === "encounter" && !(forMin >= 0 && gapMin > 0)) errors.forMin = gettext("Type two numbers of minutes.");
    if (when === "encounter" && away && !(awayM >= 0)) errors.away = gettext("Type a distance.");
    if (when !== "now" && !(latenessS >= 0 && idleS > 0)) errors.latenessS = gettext("Type two numbers of seconds.");
    return errors;
  }

  /** Show the fields that belong to the choice; none unless the join is with a stream. */
  show(ofStream) {
    const { value: when } = this.form.elements.when;
    $("when-field").hidden = !ofStream;
    $("window-fields").hidden = when !== "window";
    $("interval-fields").hidden = when !== "interval";
    $("encounter-fields").hidden = when !== "encounter";
    $("away-distance").hidden = this.form.elements.away.value === "";
    $("late-fields").hidden = when === "now";
  }
}

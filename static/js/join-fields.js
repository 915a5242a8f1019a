// The part of the query form for joins: with a layer, with the last known objects of a stream, or with the stored ones.

import { $, offer } from "./dom.js";
import { PREDICATES, SOURCES } from "./format.js";
import { WhenFields } from "./when-fields.js";

const STANDARD_M = 50;

export class JoinFields {
  /** @param {object} parts `store`; `form`, the query form's element */
  constructor({ store, form }) {
    Object.assign(this, { store, form });
    this.when = new WhenFields(form);
    form.elements.predicate.replaceChildren(...PREDICATES.map(([name, , words]) => new Option(words, name)));
    form.addEventListener("change", () => this.#show());
  }

  /** Show what a plan joins with; the first layer if it joins with nothing. */
  start(plan) {
    const { elements } = this.form;
    const join = plan?.join;
    this.when.start(plan);
    const source = SOURCES.find((one) => join?.[one]);
    this.offer(source ? `${source}:${join[source]}` : "");
    elements.predicate.value = join?.predicate ?? "intersects";
    elements.distance.value = join?.distance ?? STANDARD_M;
    elements.partnerWhere.value = join?.where ?? "";
    this.#show();
  }

  /** Offer the layers and streams that there are now. */
  offer(chosen) {
    const { layers, streams } = this.store;
    const choices = (source, of) => of.map(({ name, title }) => [`${source}:${name}`, title ?? name]);
    const all = [...streams.values()];
    const groups = [
      ["Layers", choices("layer", [...layers.values()].filter((layer) => layer.version !== null))],
      ["Last positions of a stream", choices("stream", all.filter((stream) => stream.enabled !== false))],
      ["Stored positions of a stream", choices("stored", all.filter(({ stored }) => stored))],
    ];
    offer(this.form.elements.partner, groups, chosen);
  }

  /** Return `{source, name, predicate, distance, where, when}` from the fields; `when` as `WhenFields` returns it. */
  read() {
    const { elements } = this.form;
    const [source, ...name] = elements.partner.value.split(":");
    const distance = elements.distance.valueAsNumber;
    return { source, name: name.join(":"), predicate: elements.predicate.value, distance, where: elements.partnerWhere.value.trim(), when: this.when.read() };
  }

  /** What is missing, by field. */
  errors() {
    const { name, predicate, distance } = this.read();
    const errors = this.when.errors();
    if (!name) errors.partner = "Choose a layer or a stream. You can add a layer under Layers.";
    if (predicate === "dwithin" && !(distance >= 0)) errors.distance = "Type a distance in metres.";
    return errors;
  }

  #show() {
    const { predicate, partner } = this.form.elements;
    const ofStream = partner.value.startsWith("stream:");
    const apart = [...predicate.options].find(({ value }) => value === "disjoint");
    apart.disabled = ofStream; // nearly all objects are apart from nearly all others
    if (ofStream && apart.selected) predicate.value = "dwithin";
    this.when.show(ofStream);
    $("distance-field").hidden = predicate.value !== "dwithin";
    $("partner-kind").textContent = ofStream ? "objects" : "features";
  }
}

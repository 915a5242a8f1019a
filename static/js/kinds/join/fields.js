// The part of the query form for joins: with a layer, with a stream, or with the stored elements of one.

import { $, offer } from "../../dom.js";
import { PREDICATES, SOURCES } from "../../format.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";
import { PartnerFields } from "../partner-fields.js";
import { TimeFields } from "./time-fields.js";

const STANDARD_M = 50;

export class JoinFields {
  store;
  form;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element; `part(class)`, another part of it; `kinds`, all kinds of queries */
  constructor({ store, form, part, kinds }) {
    Object.assign(this, { store, form });
    this.partners = part(PartnerFields);
    this.measures = measureFields(form.elements, { distance: LENGTH });
    this.times = new TimeFields({ store, form, kinds });
    form.elements.predicate.replaceChildren(...PREDICATES.map(([name, , words]) => new Option(words, name)));
  }

  /** Show what a plan joins with; the first layer if it joins with nothing. */
  start(plan) {
    const { elements } = this.form;
    const { join } = plan;
    const source = SOURCES.find((one) => join?.[one]);
    this.offer(source ? `${source}:${join[source]}` : "");
    elements.predicate.value = join?.predicate ?? "intersects";
    this.measures.distance.show(join?.distance ?? STANDARD_M);
    this.times.start(plan);
  }

  /** Offer the layers and streams that there are now. */
  offer(chosen) {
    const { layers, streams } = this.store;
    const choices = (source, of) => of.map(({ name, title }) => [`${source}:${name}`, title ?? name]);
    const all = [...streams.values()];
    const groups = [
      [
        gettext("Layers"),
        choices(
          "layer",
          [...layers.values()].filter((layer) => layer.version !== null),
        ),
      ],
      [
        gettext("Streams"),
        choices(
          "stream",
          all.filter((stream) => stream.enabled !== false),
        ),
      ],
      [
        gettext("Stored positions of a stream"),
        choices(
          "stored",
          all.filter(({ stored }) => stored),
        ),
      ],
    ];
    offer(this.form.elements.partner, groups, chosen);
    this.times.offer();
  }

  /** Return `join`, `{source, name, predicate, distance, where, times}`, from the fields. */
  read() {
    const { elements } = this.form;
    const [source, ...name] = elements.partner.value.split(":");
    const distance = this.measures.distance.own;
    const { value: predicate } = elements.predicate;
    const { where } = this.partners;
    return { join: { source, name: name.join(":"), predicate, distance, where, times: this.times.read() } };
  }

  /** What is missing, by field. */
  errors() {
    const { source, name, predicate, distance } = this.read().join;
    const errors = /** @type {Record<string, string>} */ ({});
    if (!name) errors.partner = gettext("Choose a layer or a stream. You can add a layer under Layers.");
    if (predicate === "dwithin" && !(distance >= 0)) errors.distance = gettext("Type a distance.");
    return source === "stream" ? { ...errors, ...this.times.errors() } : errors;
  }

  show(visible) {
    $("join-fields").hidden = !visible;
    if (!visible) return;
    const { predicate, partner } = this.form.elements;
    const ofStream = partner.value.startsWith("stream:");
    const apart = [...predicate.options].find(({ value }) => value === "disjoint");
    apart.disabled = ofStream; // nearly all objects are apart from nearly all others
    if (ofStream && apart.selected) predicate.value = "dwithin";
    $("distance-field").hidden = predicate.value !== "dwithin";
    this.times.show(ofStream);
    if (ofStream) this.partners.name(gettext("objects"), "speed_mps > 5");
    else this.partners.name(gettext("features"), "kind = 'forest'");
  }
}

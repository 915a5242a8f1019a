// The fields of an encounter that say what both objects must be away from.

import { $, offer } from "../../dom.js";
import { gettext } from "../../i18n.js";
import { measureFields } from "../../measure-field.js";
import { LENGTH } from "../../quantities.js";

export class AwayFields {
  store;
  form;

  /** @param {Record<string, any>} parts `store`; `form`, the query form's element */
  constructor({ store, form }) {
    Object.assign(this, { store, form });
    this.measures = measureFields(form.elements, { awayM: LENGTH });
  }

  start({ away, awayM }) {
    this.offer(away);
    this.measures.awayM.show(awayM);
  }

  /** Offer the layers that there are now. */
  offer(chosen) {
    const layers = [...this.store.layers.values()]
      .filter(({ version }) => version !== null)
      .map(({ name, title }) => [name, title ?? name]);
    const { away } = this.form.elements;
    offer(away, [["", [["", gettext("nothing")], ...layers]]], chosen ?? away.value);
  }

  show() {
    $("away-distance").hidden = this.form.elements.away.value === "";
  }

  read() {
    return { away: this.form.elements.away.value, awayM: this.measures.awayM.own };
  }
}

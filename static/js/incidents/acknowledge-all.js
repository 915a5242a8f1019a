// One click acknowledges all incidents of the list that nobody has acknowledged.

import { $, setText } from "../dom.js";
import { count } from "../format.js";
import { filled, ngettext } from "../i18n.js";

const LEAST = 2; // a single one has a button of its own
const PAUSE_MS = 25; // a connection may send 50 messages a second

export class AcknowledgeAll {
  /** @param {Record<string, any>} parts `ask(message)`, returning a promise of the reply; `onError(text)` */
  constructor({ ask, onError }) {
    this.ask = ask;
    this.onError = onError;
    this.waiting = [];
    this.busy = false;
    this.button = $("incident-acknowledge-all");
    this.button.addEventListener("click", () => this.#acknowledge());
  }

  /** Offer it for those of some incidents that are open and not acknowledged. */
  show(incidents) {
    this.waiting = incidents.filter(({ closed, acknowledged }) => !closed && !acknowledged);
    const { length } = this.waiting;
    this.button.hidden = length < LEAST && !this.busy;
    const text = ngettext("Acknowledge %(count)s that is shown", "Acknowledge all %(count)s that are shown", length);
    setText(this.button, filled(text, { count: count(length) }));
  }

  /** Rights are those to the query: where one is refused, those of the same query are left out. */
  async #acknowledge() {
    this.button.disabled = this.busy = true;
    const refused = new Map();
    for (const { incident, query } of [...this.waiting]) {
      if (refused.has(query)) continue;
      await this.ask({ type: "incident.acknowledge", incident }).catch(({ message }) => refused.set(query, message));
      await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
    this.button.disabled = this.busy = false;
    for (const message of new Set(refused.values())) this.onError(message);
  }
}

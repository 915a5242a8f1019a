// The list of incidents, which the server sends page by page: all open ones first, then closed ones.

const PAGE = 100;

export class IncidentPages {
  ask;
  take;
  onError;

  /** @param {Record<string, any>} parts `ask(message)`, which returns a promise of the reply; `take(reply)`; `onError(error)` */
  constructor(parts) {
    Object.assign(this, parts);
    this.turn = 0;
    this.asked = false; // whether a list has come
    this.next = { open: null, closed: null }; // where the next page of each begins; null for the end
    this.filters = {};
  }

  /** Whether there are incidents that pass the filters and have not come yet. */
  get more() {
    return this.next.open !== null || this.next.closed !== null;
  }

  /** Ask for the first pages of the incidents that pass filters; return a promise of their numbers, null if some did not come. */
  async reload(/** @type {Record<string, any>} */ { severity, query, assigned, state } = {}) {
    const turn = ++this.turn;
    this.filters = { ...(severity && { severity }), ...(query && { query }), ...(assigned && { mine: true }) };
    this.next = { open: null, closed: null };
    const states = { open: ["open"], new: ["open"], snoozed: ["open"], closed: ["closed"] }[state] ?? [
      "open",
      "closed",
    ];
    const replies = await Promise.all(states.map((one) => this.#page(one, undefined, turn)));
    if (turn !== this.turn || replies.includes(null)) return null;
    this.asked = true;
    return new Set(replies.flatMap((reply) => reply.incidents.map(({ incident }) => incident)));
  }

  /** Ask for the next page: of open incidents as long as there are more. */
  showMore() {
    const state = this.next.open !== null ? "open" : "closed";
    return this.#page(state, this.next[state], this.turn);
  }

  /** Ask only how many are open. */
  recount() {
    return this.#ask({ limit: 1 });
  }

  async #page(state, after, turn) {
    const reply = await this.#ask({ state, ...this.filters, limit: PAGE, ...(after && { after }) });
    if (reply && turn === this.turn) this.next[state] = reply.next;
    return reply;
  }

  async #ask(fields) {
    try {
      const reply = await this.ask({ type: "incident.list", ...fields });
      this.take(reply);
      return reply;
    } catch (error) {
      this.onError(error);
      return null;
    }
  }
}

// The list of queries, which the server sends page by page: the user's own queries first, then those of others. A list of one
// page is shown in the order in which the queries were made.

export const PAGE = 100; // queries; an installation with no more has all of them on one page
const MOST_OWN = 1000; // of the user's own queries that the page asks for by itself
const RECOUNT_MS = 2000;
const START = { mine: true, query: 0 };

/** Return whether a position `{mine, query}` of the list is not after another; null is its end. */
export function upTo(position, other) {
  if (position === null || other === null) return other === null;
  return position.mine === other.mine ? position.query <= other.query : position.mine;
}

export class QueryPages {
  store;
  ask;
  onError;
  onChange;
  later;

  /**
   * @param {Record<string, any>} parts `store`; `ask(message)`, which returns a promise of the server's reply; `onError(error)`; `onChange()`;
   *   `later(run, ms)`, to count again
   */
  constructor({ later = (run, ms) => setTimeout(run, ms), ...parts }) {
    Object.assign(this, { later, ...parts });
    this.total = 0; // queries that the user may see
    this.next = START; // how far the list has come; null for its end
    this.found = null; // {search, numbers, total, next}: what a search found; null without a search
    this.search = "";
    this.failed = false; // the last page did not come
    this.loading = false;
    this.turn = 0;
    this.searches = 0;
    this.counting = false;
  }

  /** Whether the list has come. */
  get known() {
    return this.next !== START;
  }

  /** Whether all queries are listed, and fit on one page. */
  get few() {
    return this.next === null && this.store.queries.size <= PAGE;
  }

  /** Whether there are more queries, or more results of the search, than are listed. */
  get more() {
    return (this.found ?? this).next !== null;
  }

  /** Return the queries to list, in their order. */
  listed() {
    const listed = this.found
      ? this.store.listed().filter(({ query }) => this.found.numbers.has(query))
      : this.#ofList();
    const others = ({ mine }) => Number(mine === false);
    return this.few ? listed : listed.sort((a, b) => others(a) - others(b)); // a stable sort: each part keeps its order
  }

  /** Return how many queries the user may see. */
  count() {
    return this.next === null ? this.#ofList().length : this.total;
  }

  /**
   * Ask for the list anew, as far as it had come, and for all of the user's own queries. Queries that are not on it any more
   * are forgotten.
   */
  async reload() {
    const turn = ++this.turn;
    const before = this.#ofList().length;
    this.store.restate();
    this.loading = true;
    let page = null;
    let listed = 0;
    do {
      page = await this.#page({ after: page?.next });
      if (turn !== this.turn) return;
      if (!page) break;
      listed += page.queries.length;
      if (!upTo(page.next, this.next)) this.next = page.next;
      this.total = page.total;
    } while (page.next && (listed < before || (page.next.mine && listed < MOST_OWN)));
    this.loading = false;
    if (page && this.search) await this.#find();
    if (page && turn === this.turn) {
      this.next = page.next;
      this.store.forgetUnstated();
    }
    this.onChange();
  }

  /** Ask for the next page of the list, or of what a search finds. */
  async showMore() {
    if (this.loading) return;
    if (this.next === START) return this.reload();
    const { found, turn } = this;
    this.loading = true;
    const page = await this.#page({ after: (found ?? this).next, search: found?.search });
    if (turn !== this.turn) return;
    this.loading = false;
    if (page) {
      Object.assign(found ?? this, { next: page.next, total: page.total });
      for (const { query } of found ? page.queries : []) found.numbers.add(query);
    }
    this.onChange();
  }

  /** List the queries that the server finds for a text; without a text, all queries again. */
  async find(text) {
    this.search = text.trim();
    if (this.search) await this.#find();
    else if (this.found) {
      this.searches++;
      this.found = null;
      this.store.forget(
        [...this.store.queries.values()].filter((query) => !this.#reached(query)).map(({ query }) => query),
      );
    }
    this.onChange();
  }

  /** Take note of a message of the server, after the store has applied it. */
  follow({ type, status }) {
    if (["hello", "changes.missed"].includes(type)) this.reload();
    if (type === "stream.list" && this.asked !== undefined && this.asked !== this.#spaces()) this.reload();
    const came = type === "query.status" && ["pending", "cancelled"].includes(status);
    if ((type === "queries.changed" || came) && (this.next !== null || this.found)) this.#recount();
  }

  async #find() {
    const number = ++this.searches;
    const { search } = this;
    const page = await this.#page({ search });
    if (!page || number !== this.searches) return;
    this.found = {
      search,
      numbers: new Set(page.queries.map(({ query }) => query)),
      total: page.total,
      next: page.next,
    };
  }

  /** Take over what a search finds now, if it was listed to its end; otherwise only the number. */
  async #findAgain() {
    const { found } = this;
    if (found.next === null) return this.#find();
    const page = await this.#page({ limit: 1, search: found.search });
    if (page) found.total = page.total;
  }

  #recount() {
    if (this.counting) return;
    this.counting = true;
    this.later(async () => {
      this.counting = false;
      const all = await this.#page({ limit: 1 });
      if (all) this.total = all.total;
      if (this.found) await this.#findAgain();
      this.onChange();
    }, RECOUNT_MS);
  }

  /** Return a promise of a page; null if it does not come. */
  async #page(/** @type {Record<string, any>} */ { after, search, limit = PAGE }) {
    const { mapped } = this.store;
    this.asked = this.#spaces();
    try {
      const page = await this.ask({
        type: "query.list",
        limit,
        ...(mapped && { spaces: [...mapped] }),
        ...(after && { after }),
        ...(search && { search }),
      });
      this.failed = false;
      return page;
    } catch (error) {
      this.failed = true;
      this.onError(error);
      return null;
    }
  }

  #spaces() {
    return JSON.stringify(this.store.mapped && [...this.store.mapped].sort());
  }

  #ofList() {
    return this.store.listed().filter((query) => this.#reached(query));
  }

  #reached({ query, mine }) {
    return mine !== false || upTo({ mine: false, query }, this.next);
  }
}
